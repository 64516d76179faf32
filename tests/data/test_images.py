import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spherule.data import BadPanorama
from spherule.data.images import MAX_PIXELS, majority, nearest, read_png, shrink, shrink_valid


def cell_average(image: np.ndarray, size: tuple[int, int], cell: tuple[int, int]) -> float:
    """By brute force: every pixel's overlap with the cell, in solid angle."""
    total = area = 0.0
    for i in range(image.shape[0]):
        top = max(i / image.shape[0], cell[0] / size[0])
        bottom = min((i + 1) / image.shape[0], (cell[0] + 1) / size[0])
        for j in range(image.shape[1]):
            left = max(j / image.shape[1], cell[1] / size[1])
            right = min((j + 1) / image.shape[1], (cell[1] + 1) / size[1])
            if bottom > top and right > left:
                part = (np.cos(np.pi * top) - np.cos(np.pi * bottom)) * (right - left)
                total, area = total + part * image[i, j], area + part
    return total / area


@pytest.mark.parametrize("size", [(4, 8), (5, 7), (9, 18), (12, 24), (16, 31)])
def test_shrinking_averages_by_solid_angle_at_any_ratio(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).random((12, 24))
    small = shrink(image, size)
    for cell in [(0, 0), (1, 3), (size[0] - 1, size[1] - 1)]:
        assert small[cell] == pytest.approx(cell_average(image, size, cell), rel=1e-12)
    edges = [np.cos(np.pi * np.arange(n + 1) / n) for n in (12, size[0])]
    fine, coarse = (-np.diff(e) / 2 for e in edges)
    assert coarse @ small.mean(1) == pytest.approx(fine @ image.mean(1), rel=1e-12)


def test_channels_shrink_one_by_one_and_constants_stay() -> None:
    image = np.random.default_rng(0).integers(0, 256, (8, 16, 3), dtype=np.uint8)
    for c in range(3):
        np.testing.assert_allclose(shrink(image, (3, 5))[..., c], shrink(image[..., c], (3, 5)))
    np.testing.assert_allclose(shrink(np.full((8, 16, 3), 255, np.uint8), (3, 5)), 255)


def test_invalid_pixels_have_no_part_in_averages() -> None:
    rng = np.random.default_rng(0)
    values, valid = rng.random((8, 16)), rng.random((8, 16)) < 0.5
    valid[:4, :8] = False
    values[~valid] = np.nan
    small = shrink_valid(values, valid, (2, 4))
    assert np.isnan(small[0, :2]).all()
    part = values[4:, 4:8][valid[4:, 4:8]]
    weights = -np.diff(np.cos(np.pi * np.arange(9) / 8))[4:, None] * valid[4:, 4:8]
    assert small[1, 1] == pytest.approx(np.average(part, weights=weights[valid[4:, 4:8]]))


@pytest.mark.parametrize("size", [(2, 4), (5, 7), (8, 16)])
def test_labels_are_the_centers_or_the_majoritys(size: tuple[int, int]) -> None:
    labels = np.random.default_rng(0).integers(0, 3, (8, 16), dtype=np.uint8)
    near, most = nearest(labels, size), majority(labels, size, 3)
    assert near.dtype == most.dtype == np.uint8
    areas = np.stack([shrink(labels == c, size) for c in range(3)], -1)
    np.testing.assert_array_equal(most, areas.argmax(-1))
    for i in range(size[0]):
        for j in range(size[1]):
            row, column = int((i + 0.5) / size[0] * 8), int((j + 0.5) / size[1] * 16)
            assert near[i, j] == labels[row, column]
    if size == (8, 16):
        np.testing.assert_array_equal(near, labels)
        np.testing.assert_array_equal(most, labels)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, bits: int = 8, color: int = 2, rows: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_hostile_images_are_named_before_they_do_harm(tmp_path: Path) -> None:
    good = tmp_path / "good.png"
    Image.fromarray(np.arange(96, dtype=np.uint8).reshape(4, 8, 3)).save(good)
    assert read_png(good, "x", ("RGB",)).shape == (4, 8, 3)
    content = good.read_bytes()
    gif = tmp_path / "g.gif"
    Image.new("RGB", (8, 4)).save(gif)
    deep = png(2, 1, bits=16, rows=b"\0" + b"\1" * 12)
    cases = {
        "empty": (b"", "damaged"),
        "truncated": (content[: len(content) // 2], "damaged"),
        "no data": (content[:40], "damaged"),
        "garbage": (b"\x89PNG\r\n\x1a\n" + b"\xff" * 100, "damaged"),
        "another format": (gif.read_bytes(), "damaged"),
        "wide": (png(8001, 4000), "oversized"),
        "bomb": (png(60_000, 30_000), "oversized"),
        "less of a bomb": (png(14_000, 7_000), "oversized"),
        "gray": (png(8, 4, color=0, rows=(b"\0" + b"\1" * 8) * 4), "wrong mode"),
        "16 bits a color": (deep, "wrong mode"),
    }
    assert MAX_PIXELS < 8001 * 4000
    for words, (data, kind) in cases.items():
        path = tmp_path / "bad.png"
        path.write_bytes(data)
        with pytest.raises(BadPanorama, match=r"area_1/x: .*bad\.png") as caught:
            read_png(path, "area_1/x", ("RGB",))
        assert caught.value.kind == kind, words


def test_any_flipped_or_missing_byte_ends_in_pixels_or_a_named_error(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    picture = np.random.default_rng(0).integers(0, 256, (4, 8, 3), dtype=np.uint8)
    Image.fromarray(picture).save(path)
    content, found = path.read_bytes(), 0
    for place in range(len(content)):
        for harmed in (
            content[:place],
            content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :],
        ):
            path.write_bytes(harmed)
            try:
                pixels = read_png(path, "x", ("RGB",))
            except BadPanorama:
                found += 1
            else:
                assert np.array_equal(pixels, picture)
    assert found > len(content)


def test_pipes_and_directories_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "directory.png").mkdir()
    for name in ("pipe.png", "directory.png", "nothing.png"):
        with pytest.raises(BadPanorama, match="not a file"):
            read_png(tmp_path / name, "x", ("RGB",))
