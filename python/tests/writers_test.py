"""Readers against files that MDS's original writer makes here, with everything that it can write.
Skipped where mosaicml-streaming is not installed, as it needs torch."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import numpy as np
import pytest

import mds_samples
import millrace

streaming = pytest.importorskip("streaming", reason="mosaicml-streaming is not installed")

from PIL import Image  # noqa: E402
from streaming.base.compression import get_compressions  # noqa: E402
from streaming.base.format.mds.encodings import get_mds_encodings, mds_encode  # noqa: E402
from streaming.base.hashing import get_hashes  # noqa: E402

SAMPLES = 11
NUMBERS = ("uint16", "uint32", "int8", "int32", "int64")
LISTS = {"list[pil]": "pil", "list[jpeg]": "jpeg", "list[png]": "png"}
COLUMNS = mds_samples.COLUMNS | {f"number_{name}": name for name in NUMBERS} | {
    "photo": "jpeg", "photos": "list[jpeg]", "raw_pictures": "list[pil]", "frames": "jpeg_array",
    "old_frames": "jpegarray", "thing": "pkl"}


def jpeg(pixels: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="JPEG")
    return out.getvalue()


def sample(number: int) -> dict[str, Any]:
    """The values of one sample, as the writer takes them."""
    picture = mds_samples.pixels(number, 3)
    values = mds_samples.sample(number) | {
        f"number_{name}": np.dtype(name).type(100 - number) for name in NUMBERS} | {
        "photo": picture, "photos": [picture] * (number % 3), "raw_pictures": [picture] * 2,
        "frames": [jpeg(picture), b"second"], "old_frames": [jpeg(picture)],
        "thing": {"number": number, "set": {1, 2}}}
    for name, encoding in COLUMNS.items():
        if encoding in LISTS:
            values[name] = [Image.fromarray(pixels) for pixels in values[name]]
        elif encoding in ("pil", "jpeg", "png"):
            values[name] = Image.fromarray(values[name])
    return values


def expected(encoding: str, value: Any) -> Any:
    """What our reader gives for a value: pictures as they are stored, but pixels as arrays."""
    if encoding in LISTS:
        return [mds_encode(LISTS[encoding], item) for item in value]
    if encoding in ("jpeg", "png"):
        return mds_encode(encoding, value)
    return np.asarray(value) if encoding == "pil" else value


def write(directory: pathlib.Path, compression: str | None, hashes: list[str]) -> None:
    with streaming.MDSWriter(out=str(directory), columns=COLUMNS, compression=compression,
                             hashes=hashes, size_limit=6000) as writer:
        for number in range(SAMPLES):
            writer.write(sample(number))
    assert len(list(directory.glob("shard.*"))) > 2


def check(directory: pathlib.Path, **options: Any) -> None:
    dataset = millrace.Dataset(directory, shuffle=False, engine="process", allow_pickle=True,
                               **options)
    assert dataset.info()["datasets"][0]["reader"] == "mds" and len(dataset) == SAMPLES
    batch = dataset.read(range(SAMPLES))
    for number in range(SAMPLES):
        one = dataset[number]
        for name, value in sample(number).items():
            for read in (batch[name][number], one[name]):
                wanted = expected(COLUMNS[name], value)
                if isinstance(wanted, np.ndarray):
                    assert read.dtype == wanted.dtype, name
                    np.testing.assert_array_equal(read, wanted, err_msg=name)
                else:
                    assert (list(read) if isinstance(wanted, list) else read) == wanted, name


def test_all_that_the_writer_knows_is_written_here() -> None:
    assert {encoding.partition(":")[0] for encoding in COLUMNS.values()} == get_mds_encodings()


@pytest.mark.parametrize("compression", [
    None, *sorted({name.partition(":")[0] for name in get_compressions()}), "br:1", "bz2:1", "gz:1",
    "zstd:1", "zstd:22"])
def test_mds_with_every_encoding(home: pathlib.Path, tmp_path: pathlib.Path,
                                 compression: str | None) -> None:
    write(tmp_path / "mds", compression, ["sha1", "xxh3_64"])
    check(tmp_path / "mds")


@pytest.mark.parametrize("name", sorted(get_hashes()))
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_every_hash_is_compared(home: pathlib.Path, tmp_path: pathlib.Path, name: str,
                                compression: str | None) -> None:
    with streaming.MDSWriter(out=str(tmp_path / "mds"), columns={"number": "int"},
                             compression=compression, hashes=[name]) as writer:
        for number in range(SAMPLES):
            writer.write({"number": number})

    def numbers() -> list[int]:
        dataset = millrace.Dataset(tmp_path / "mds", shuffle=False, engine="process",
                                   verify_hashes=True)
        return [int(number) for number in dataset.read(range(SAMPLES))["number"]]

    assert numbers() == list(range(SAMPLES))
    shard = next((tmp_path / "mds").glob("shard.*"))
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    with pytest.raises(millrace.CorruptionError, match=f"{shard.name}: its {name}"):
        numbers()
