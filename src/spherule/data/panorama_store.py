"""Panoramas to disk: a Zarr store that xarray opens, from any source of panoramas.

While it is written, a journal in it has one line a sample of the source: its moments and checksum,
or why it was left out. A torn last line doesn't count, so a killed run goes on from what is safe.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from spherule import checks
from spherule.data.panoramas import (
    CLASSES,
    FORMAT,
    RANDOM,
    SPLITS,
    BadPanorama,
    Fold,
    Panorama,
    PanoramaStatistics,
)
from spherule.data.zarr_store import (
    consolidate,
    create_store,
    open_store,
    partial_of,
    place_coordinates,
    require_same,
    room_for,
    write_coordinates,
    zarr_module,
)
from spherule.grids import Grid, image_grid

SPLIT_SEED = 333
HELD_OUT = 0.025
"""Of all samples, in each of val and test."""
JOURNAL = "journal.jsonl"


@runtime_checkable
class PanoramaSource(Protocol):
    """Numbered panoramas of the size that is written; it travels to worker processes.

    A sample that can't be used raises `BadPanorama`.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Panorama: ...


@checks.arguments
def write_panoramas(
    path: Path | str,
    source: PanoramaSource,
    *,
    size: tuple[int, int],
    config: Mapping[str, Any],
    folds: Mapping[str, Fold] | None = None,
    workers: int = 0,
    bad: Literal["skip", "raise"] = "raise",
) -> Iterator[int]:
    """Write all panoramas of a source; yields how many of them are dealt with, from what an
    interrupted run left.

    `config` (plain JSON values) says what the source is: a run goes on only with its own. `folds`
    name the areas that each holds out; one of which no sample trains, validates or tests is left
    out.
    """
    path = Path(path)
    if bad not in ("skip", "raise"):
        raise ValueError(f"bad={bad!r}: expected skip or raise")
    if len(source) < 1 or workers < 0:
        raise ValueError(f"source has {len(source)} panoramas, workers={workers}: expected some")
    for name, fold in (folds or {}).items():
        if both := sorted(set(fold.test) & set(fold.val)):
            raise ValueError(f"folds[{name!r}]: {', '.join(both)} can't both validate and test")
    if path.exists():
        raise FileExistsError(f"{path} exists: remove it, or choose another name")
    partial, grid = partial_of(path), image_grid(*size)
    with room_for(path):
        group, records = _begin(partial, grid, len(source), json.loads(json.dumps(config)))
        yield len(records)
        row = sum("moments" in record for record in records)
        items = _Items(source, grid, len(records))
        with open(partial / JOURNAL, "a", encoding="utf-8") as journal:
            for item in DataLoader(items, batch_size=None, num_workers=workers, collate_fn=_same):
                if isinstance(item, BadPanorama):
                    if bad == "raise":
                        raise item
                    record = {"name": item.name, "kind": item.kind, "reason": item.reason}
                else:
                    panorama, record = item
                    for name in ("rgb", "label", "depth"):
                        group[name][row] = getattr(panorama, name)
                    row += 1
                records.append(record)
                journal.write(json.dumps(record) + "\n")
                journal.flush()
                yield len(records)
        _finish(group, records, folds or {})
        consolidate(partial)
        partial.rename(path)
        (path / JOURNAL).unlink()


def random_split(samples: int) -> NDArray[np.uint8]:
    """Places in SPLITS: 2.5 % each for val and test, but at least one of each, given three."""
    held_out = max(round(HELD_OUT * samples), 1) if samples >= 3 else 0
    order = np.random.default_rng(SPLIT_SEED).permutation(samples)
    split = np.zeros(samples, dtype=np.uint8)
    split[order[:held_out]] = SPLITS.index("val")
    split[order[held_out : 2 * held_out]] = SPLITS.index("test")
    return split


class _Items(Dataset[tuple[Panorama, dict[str, Any]] | BadPanorama]):
    """What workers share out: panoramas from the given one on, with their line of the journal."""

    def __init__(self, source: PanoramaSource, grid: Grid, first: int) -> None:
        self.source, self.grid, self.first = source, grid, first

    def __len__(self) -> int:
        return len(self.source) - self.first

    def __getitem__(self, index: int) -> tuple[Panorama, dict[str, Any]] | BadPanorama:
        try:
            panorama = self.source[self.first + index]
        except BadPanorama as error:
            return error
        _require_fit(panorama, self.grid)
        record = {
            "name": panorama.name,
            "area": panorama.area,
            "checksum": panorama.checksum(),
            "moments": panorama.moments(self.grid).tolist(),
        }
        return panorama, record


def _same(item: Any) -> Any:
    return item


def _require_fit(panorama: Panorama, grid: Grid) -> None:
    for name, shape, dtype in (
        ("rgb", (*grid.shape, 3), np.uint8),
        ("label", grid.shape, np.uint8),
        ("depth", grid.shape, np.float32),
    ):
        array = getattr(panorama, name)
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(
                f"{panorama.name}: {name} is {array.dtype} {array.shape}, expected "
                f"{np.dtype(dtype)} {shape}"
            )
    if panorama.label.max() >= len(CLASSES):
        raise ValueError(f"{panorama.name}: label {panorama.label.max()} is no class")
    if np.isinf(panorama.depth).any() or (panorama.depth <= 0).any():
        raise ValueError(f"{panorama.name}: depth must be positive, or NaN where there is none")


def _begin(
    partial: Path, grid: Grid, candidates: int, config: dict[str, Any]
) -> tuple[Any, list[dict[str, Any]]]:
    """A new store under its preliminary name, or the one that was begun, and its journal."""
    wanted = {"grid": grid.name, "candidates": candidates, "config": config}
    journal = partial / JOURNAL
    if journal.exists():
        group = open_store(partial, FORMAT, wanted)
        require_same(partial, group.attrs, wanted)
        lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines if line.endswith("\n")]
        if whole != lines:
            journal.write_text("".join(whole), encoding="utf-8")
        return group, [json.loads(line) for line in whole]
    group = create_store(partial, FORMAT, wanted, size=8 * grid.size * candidates)
    group.attrs["classes"] = list(CLASSES)
    zarr = zarr_module()
    for name, dtype, more, fill in (
        ("rgb", "uint8", {"channel": 3}, 0),
        ("label", "uint8", {}, len(CLASSES) - 1),
        ("depth", "float32", {}, float("nan")),
    ):
        shape = (*grid.shape, *more.values())
        array = group.create_array(
            name,
            shape=(candidates, *shape),
            chunks=(1, *shape),
            dtype=dtype,
            fill_value=fill,
            compressors=[zarr.codecs.ZstdCodec(level=1, checksum=True)],
            dimension_names=("sample", "lat", "lon", *more),
        )
        array.attrs["coordinates"] = "lat lon"
    group["depth"].attrs.update(units="m", long_name="distance from the camera")
    group["label"].attrs["flag_meanings"] = " ".join(CLASSES)
    write_coordinates(group, place_coordinates(grid))
    journal.touch()
    return group, []


def _finish(group: Any, records: list[dict[str, Any]], folds: Mapping[str, Fold]) -> None:
    """What is known at the end only: how many samples there are, splits and statistics."""
    rows = [record for record in records if "moments" in record]
    skipped = [record for record in records if "moments" not in record]
    if not rows:
        raise ValueError(f"none of {len(records)} panoramas can be used; the first: {skipped[0]}")
    for name in ("rgb", "label", "depth"):
        group[name].resize((len(rows), *group[name].shape[1:]))
    for name in ("name", "area"):
        array = group.create_array(
            name, shape=(len(rows),), dtype=str, dimension_names=("sample",), overwrite=True
        )
        array[:] = np.array([row[name] for row in rows], dtype=object)
    moments = np.array([row["moments"] for row in rows])
    checksums = np.array([row["checksum"] for row in rows], dtype=np.uint32)
    splits = {RANDOM: random_split(len(rows))}
    areas = [row["area"] for row in rows]
    for name, fold in folds.items():
        split = np.zeros(len(rows), dtype=np.uint8)
        for part in ("val", "test"):
            split[np.isin(areas, getattr(fold, part))] = SPLITS.index(part)
        if np.unique(split).size == len(SPLITS):
            splits[f"fold_{name}"] = split
    for name, values in {"checksum": checksums, **splits}.items():
        group.create_array(name, data=values, dimension_names=("sample",), overwrite=True)
    for name in splits:
        group[name].attrs.update(flag_values=[0, 1, 2], flag_meanings=" ".join(SPLITS))
    group.create_array(
        "moments", data=moments, dimension_names=("sample", "moment"), overwrite=True
    )
    group.attrs["statistics"] = {
        name: asdict(PanoramaStatistics.of(moments[split == 0])) for name, split in splits.items()
    }
    group.attrs["skipped"] = skipped
