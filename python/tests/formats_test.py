"""Readers against what the original writers wrote."""

from __future__ import annotations

import io
import itertools
import json
import pathlib
import pickle
import struct
import tarfile
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


def test_an_empty_batch_of_mds_has_every_column(home: pathlib.Path, engine: str) -> None:
    dataset = millrace.Dataset(GOLDEN / "mds" / "none", shuffle=False, engine=engine)
    full, empty = dataset.read(range(1)), dataset.read([])
    assert list(empty) == list(full)
    for name, column in empty.items():
        assert type(column) is type(full[name]) and len(column) == 0 and list(column) == []
        if isinstance(column, np.ndarray):
            assert (column.dtype, column.shape[1:]) == (full[name].dtype, full[name].shape[1:])
    assert empty["shaped_array"].shape == (0, 2, 3)


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


def test_hashes_of_whole_shards(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    dataset = millrace.Dataset(GOLDEN / "mds" / "none", verify_hashes=True, engine="process")
    assert dataset.read(range(SAMPLES)).samples == SAMPLES
    for file in (GOLDEN / "mds" / "none").iterdir():
        content = bytearray(file.read_bytes())
        if file.name == "shard.00001.mds":
            content[-1] ^= 1
        (tmp_path / file.name).write_bytes(content)
    with pytest.raises(millrace.CorruptionError, match="shard.00001.mds: its sha1"):
        millrace.Dataset(tmp_path, verify_hashes=True, engine="process").read(range(SAMPLES))
    assert millrace.Dataset(tmp_path, engine="process").read(range(SAMPLES)).samples == SAMPLES


def write_pickled(directory: pathlib.Path, values: list[Any]) -> None:
    """One shard of MDS with one pickled column."""
    samples = [struct.pack("<I", len(data)) + data for data in map(pickle.dumps, values)]
    head: dict[str, Any] = {
        "column_encodings": ["pkl"], "column_names": ["thing"], "column_sizes": [None],
        "compression": None, "format": "mds", "hashes": [], "size_limit": 1 << 26, "version": 2}
    config = json.dumps(head, sort_keys=True).encode()
    ends = itertools.accumulate(map(len, samples), initial=4 * (len(values) + 2) + len(config))
    shard = struct.pack(f"<{len(values) + 2}I", len(values), *ends) + config + b"".join(samples)
    (directory / "shard.00000.mds").write_bytes(shard)
    raw = {"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}}
    index = {"version": 2, "shards": [head | {"raw_data": raw, "zip_data": None,
                                              "samples": len(values)}]}
    (directory / "index.json").write_text(json.dumps(index))


def test_pickles_are_refused_unless_allowed(engine: str, tmp_path: pathlib.Path) -> None:
    values = [{"a": [1, 2]}, None, (3.5, "text")]
    write_pickled(tmp_path, values)
    with pytest.raises(millrace.UnsupportedError, match="'thing' is pickled.*allow_pickle"):
        len(millrace.Dataset(tmp_path, shuffle=False, engine=engine))
    dataset = millrace.Dataset(tmp_path, shuffle=False, engine=engine, allow_pickle=True)
    assert list(dataset.read(range(3))["thing"]) == values
    assert [sample["thing"] for sample in dataset] == values
    with pytest.raises(millrace.UnsupportedError):  # Others are not served what this one may have.
        len(millrace.Dataset(tmp_path, shuffle=False, engine=engine))


def write_shards(directory: pathlib.Path) -> dict[str, dict[str, bytes]]:
    written: dict[str, dict[str, bytes]] = {}
    for number in range(20):
        written[f"{number:03}"] = {"txt": f"text {number}".encode(), "bin": bytes([number]) * 900}
    for shard in range(2):
        with tarfile.open(directory / f"{shard}.tar", "w") as archive:
            for key in sorted(written)[shard * 10:shard * 10 + 10]:
                for field, content in written[key].items():
                    member = tarfile.TarInfo(f"{key}.{field}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    return written


def fields(dataset: millrace.Dataset) -> dict[str, dict[str, bytes]]:
    return {sample.pop("__key__"): dict(sample) for sample in dataset}


def test_tar_shards_need_no_index(engine: str, tmp_path: pathlib.Path, program: Program) -> None:
    written = write_shards(tmp_path)
    dataset = millrace.Dataset(tmp_path, engine=engine)
    assert dataset.info()["datasets"][0]["reader"] == "webdataset"
    assert fields(dataset) == written
    name = f"tars-{engine}@v1"
    program("publish", str(tmp_path), name)
    assert fields(millrace.Dataset(name, engine=engine)) == written
    assert fields(millrace.Dataset(name, reader="webdataset", engine=engine)) == written


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
