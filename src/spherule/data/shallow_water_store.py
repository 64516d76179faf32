"""Shallow water samples on disk: a Zarr store that xarray opens.

While it is written, its name ends in `.partial`; a file `progress` in it counts the samples that
are safe, and the same command goes on from there. The whole store then takes its name in one step.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from spherule import checks
from spherule.data.shallow_water import BLOCK, ShallowWaterConfig, ShallowWaterDataset
from spherule.data.statistics import Statistics
from spherule.data.zarr_store import (
    Coordinate,
    consolidate,
    create_store,
    described,
    open_store,
    partial_of,
    place_coordinates,
    require_coordinates,
    require_same,
    room_for,
    write_coordinates,
    zarr_module,
)
from spherule.files import write_whole
from spherule.grids import Grid
from spherule.pde.shallow_water import UNITS, VARIABLES

LONG_NAMES = ("geopotential of the depth", "relative vorticity", "divergence")
FORMAT = "spherule shallow water 1"


class StoredShallowWater(Dataset[tuple[Tensor, Tensor]]):
    """The samples of a store, as `ShallowWaterDataset` would make them: pairs (input, target) of
    normalized fields.

    Where a config is given, the store must be of that config.
    """

    @checks.arguments
    def __init__(
        self,
        path: Path | str,
        config: ShallowWaterConfig | None = None,
        *,
        statistics: Statistics | None = None,
    ) -> None:
        self.path = Path(path)
        self._group = _opened(self.path)
        with described(self.path):
            attributes = dict(self._group.attrs)
            self.config = ShallowWaterConfig(**{k: attributes[k] for k in _FIELDS})
            if config is not None:
                require_same(self.path, self.config.resolved(), config.resolved())
            self.grid = Grid.from_name(self.config.grid)
            self.seed, self._samples = int(attributes["seed"]), int(attributes["samples"])
            self._require_whole()
            variables = [self._group[name].attrs for name in VARIABLES]
            self.statistics = statistics or Statistics(
                tuple(v["mean"] for v in variables), tuple(v["std"] for v in variables)
            )

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index={index}: {self.path} has {len(self)} samples")
        index %= len(self)
        try:
            fields = np.stack([self._group[name][index] for name in VARIABLES], axis=1)
        except Exception as error:  # whatever a codec says of a torn chunk
            raise ValueError(f"{self.path} is damaged at sample {index}: {error}") from error
        if not np.isfinite(fields).all():
            raise ValueError(f"{self.path} is damaged at sample {index}: a part is missing")
        pair = self.statistics.normalize(torch.from_numpy(fields), self.grid)
        return pair[0], pair[1]

    def _require_whole(self) -> None:
        shape = (self._samples, 2, *self.grid.shape)
        for name in VARIABLES:
            if name not in self._group or self._group[name].shape != shape:
                raise ValueError(f"{self.path} is damaged: {name} is not there with shape {shape}")
        require_coordinates(self.path, self._group, _coordinates(self.config))


@checks.arguments
def write_store(
    path: Path | str,
    config: ShallowWaterConfig,
    *,
    samples: int,
    seed: int = 0,
    workers: int = 0,
) -> Iterator[int]:
    """Write samples 0, 1, ... of a seed; yields how many are safe on disk, from what an earlier,
    interrupted run left to `samples`.
    """
    path = Path(path)
    if samples < 1 or workers < 0:
        raise ValueError(f"samples={samples} must be at least 1 and workers={workers} >= 0")
    if path.exists():
        raise FileExistsError(f"{path} exists: remove it, or choose another name")
    dataset = ShallowWaterDataset(config, seed=seed)
    partial = partial_of(path)
    with room_for(path):
        group, done = _begin(partial, dataset, samples)
        yield done
        blocks = _Blocks(dataset, done // BLOCK, -(-samples // BLOCK))
        for block in DataLoader(blocks, batch_size=None, num_workers=workers):
            end = min(done + BLOCK, samples)
            for v, name in enumerate(VARIABLES):
                group[name][done:end] = block[: end - done, :, v].numpy()
            done = end
            _remember(partial, done)
            yield done
        (partial / "progress").unlink()
        partial.rename(path)


class _Blocks(Dataset[Tensor]):
    """Whole blocks, which is what workers share out."""

    def __init__(self, dataset: ShallowWaterDataset, first: int, last: int) -> None:
        self.dataset, self.first, self.last = dataset, first, last

    def __len__(self) -> int:
        return self.last - self.first

    def __getitem__(self, index: int) -> Tensor:
        return self.dataset.block(self.first + index)


_FIELDS = tuple(ShallowWaterConfig.__dataclass_fields__)


def _begin(partial: Path, dataset: ShallowWaterDataset, samples: int) -> tuple[Any, int]:
    """A new store under its preliminary name, or the one that was begun, and how far it got."""
    wanted = {**dataset.config.resolved(), "seed": dataset.seed, "samples": samples}
    if (partial / "progress").exists():
        group = _opened(partial)
        require_same(partial, {k: group.attrs[k] for k in wanted}, wanted)
        return group, int((partial / "progress").read_text())
    size = 4 * 2 * len(VARIABLES) * dataset.grid.size * samples
    group = create_store(partial, FORMAT, wanted, size)
    _fill(group, dataset, samples)
    group = consolidate(partial)
    _remember(partial, 0)
    return group, 0


def _fill(group: Any, dataset: ShallowWaterDataset, samples: int) -> None:
    zarr = zarr_module()
    grid = dataset.grid
    space = ("lat", "lon") if grid.regular else ("point",)
    shape = (2, *grid.shape)
    for v, (name, unit) in enumerate(zip(VARIABLES, UNITS, strict=True)):
        array = group.create_array(
            name,
            shape=(samples, *shape),
            chunks=(1, *shape),
            dtype="float32",
            fill_value=float("nan"),
            compressors=[zarr.codecs.ZstdCodec(level=1, checksum=True)],
            dimension_names=("sample", "time", *space),
        )
        array.attrs.update(
            units=unit,
            long_name=LONG_NAMES[v],
            coordinates="lat lon",
            mean=dataset.statistics.mean[v],
            std=dataset.statistics.std[v],
        )
    write_coordinates(group, _coordinates(dataset.config))


def _coordinates(config: ShallowWaterConfig) -> dict[str, Coordinate]:
    time = (("time",), np.array([0.0, config.lead]), "s")
    return {"time": time, **place_coordinates(Grid.from_name(config.grid))}


def _remember(partial: Path, done: int) -> None:
    write_whole(partial / "progress", str(done))


def _opened(path: Path) -> Any:
    return open_store(path, FORMAT, (*_FIELDS, "seed", "samples"))
