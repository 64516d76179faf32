"""Packages that only some functions need, and how to get one that is missing."""

import importlib
import sys
from types import ModuleType

EXTRAS = {
    "matplotlib": "plot",
    "tensorboard": "log",
    "xarray": "data",
    "zarr": "data",
    "h5netcdf": "data",
    "h5py": "data",
    "scipy": "data",
    "cftime": "data",
    "PIL": "data",
    "fsspec": "data",
    "cfgrib": "grib",
    "triton": "gpu",
    "huggingface_hub": "hub",
}
"""The extra of this package that brings each module."""


def require(module: str, purpose: str) -> ModuleType:
    """Import a module such as "matplotlib.pyplot"; if its package is missing, the error says what
    for ("a figure") it is needed and what to install.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise explained(error, purpose) from error


def explained(error: ImportError, purpose: str) -> ImportError:
    """The same error, or where one of these packages is missing, what for it is needed."""
    missing = (error.name or "").partition(".")[0]
    if missing not in EXTRAS:
        return error
    return ModuleNotFoundError(f"{purpose} needs {missing}: {install(missing)}", name=error.name)


def install(package: str) -> str:
    """What to type for one of these packages."""
    if package == "zarr" and sys.version_info < (3, 11):
        return "Zarr 3 is there from Python 3.11 on"
    return f"pip install 'spherule[{EXTRAS[package]}]'"
