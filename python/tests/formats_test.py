"""Readers against what the original writers wrote."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import Program
from mds_samples import COLUMNS, COMPRESSIONS, SAMPLES, sample

GOLDEN = pathlib.Path(__file__).parent / "golden"
OWN_GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "loader" / "golden" / "mds"


def decoded(png: bytes) -> Any:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    return np.asarray(image.open(io.BytesIO(png)))


def check(name: str, value: Any, expected: Any) -> None:
    if COLUMNS[name] == "png":
        assert bytes(value[:8]) == b"\x89PNG\r\n\x1a\n"
    elif COLUMNS[name] == "list[png]":
        assert len(value) == len(expected)
        assert all(bytes(item[1:4]) == b"PNG" for item in value)
    elif isinstance(expected, np.ndarray):
        assert value.dtype == expected.dtype
        np.testing.assert_array_equal(value, expected)
    else:
        assert value == expected


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_mds_of_its_original_writer(home: pathlib.Path, compression: str) -> None:
    dataset = millrace.Dataset(GOLDEN / "mds" / compression, shuffle=False, engine="process")
    assert dataset.info()["datasets"][0]["reader"] == "mds"
    assert len(dataset) == SAMPLES
    batch = dataset.read(range(SAMPLES))
    for number in range(SAMPLES):
        one = dataset[number]
        for name, expected in sample(number).items():
            check(name, batch[name][number], expected)
            check(name, one[name], expected)
    assert isinstance(batch["a_single"], np.ndarray) and batch["a_single"].dtype == np.float32
    assert batch["shaped_array"].shape == (SAMPLES, 2, 3)


def test_pictures_in_mds(home: pathlib.Path) -> None:
    dataset = millrace.Dataset(GOLDEN / "mds" / "none", shuffle=False, engine="process")
    for number in range(SAMPLES):
        one = dataset[number]
        np.testing.assert_array_equal(decoded(one["picture"]), sample(number)["picture"])
        for item, expected in zip(one["pictures"], sample(number)["pictures"], strict=True):
            np.testing.assert_array_equal(decoded(item), expected)


@pytest.mark.parametrize("compression", ["plain", "zstd", "gz", "bz2", "snappy", "br"])
def test_mds_of_our_own_script(home: pathlib.Path, compression: str) -> None:
    dataset = millrace.Dataset(OWN_GOLDEN / compression, shuffle=False, engine="process")
    assert len(dataset) == 6 and len(list(dataset)) == 6


def test_webdataset_of_its_original_writer(home: pathlib.Path, program: Program) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    shards = home / "shards"
    shards.mkdir()
    with webdataset.ShardWriter(str(shards / "%04d.tar"), maxcount=30, verbose=0) as writer:
        for number in range(100):
            written: dict[str, object] = {
                "__key__": f"{number:05}", "txt": f"text {number}", "cls": number % 7,
                "json": {"number": number}, "npy": np.arange(number, dtype=np.float32)}
            if number % 3 == 0:
                written["extra.bin"] = bytes([number])
            writer.write(written)
    program("publish", str(shards), "shards@v1", "--index")
    dataset = millrace.Dataset("shards@v1", shuffle=False, engine="process")
    assert dataset.info()["datasets"][0]["reader"] == "webdataset"
    assert len(dataset) == 100
    # Both readers, sample by sample; ours gives the bytes, so theirs must not decode either.
    originals = webdataset.WebDataset([str(path) for path in sorted(shards.glob("*.tar"))],
                                      shardshuffle=False)
    count = 0
    for position, original in enumerate(originals):
        ours = dataset[position]
        assert ours["__key__"] == original["__key__"]
        fields = {name for name in original if not name.startswith("__")}
        assert {name: ours[name] for name in fields} == {name: original[name] for name in fields}
        assert ours.get("extra.bin") == original.get("extra.bin")
        count += 1
    assert count == 100
