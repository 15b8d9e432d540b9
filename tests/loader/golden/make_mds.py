#!/usr/bin/env python3
"""Writes the MDS datasets that mds_source_test.cc reads, by the description of the format alone.

Usage: make_mds.py DIRECTORY     Needs the program zstd. What it writes is in the repository beside
it; run it again only when the datasets shall change.

Each dataset has the same six samples in two shards, and is compressed in another way. expected.txt
says what they hold: a line for each column of each sample, "sample column type shape bytes".
"""

import bz2
import gzip
import hashlib
import json
import pathlib
import struct
import subprocess
import sys

SAMPLES = 6
SHARD_SAMPLES = 3
SHAPE_WIDTHS = "BHIQ"


def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def array(dtype_code, shape, content, width=1):
    """An array that says its type (unless None) and its shape itself."""
    head = b"" if dtype_code is None else bytes([dtype_code])
    log2 = width.bit_length() - 1
    head += bytes([len(shape) << 2 | log2])
    return head + struct.pack(f"<{len(shape)}{SHAPE_WIDTHS[log2]}", *shape) + content


def listed(items):
    return u32(len(items)) + u32(*map(len, items)) + b"".join(items)


def columns(number):
    """(name, encoding, fixed size, stored bytes, type, shape, bytes or items) of one sample."""
    floats = struct.pack("<6f", *[number + n / 2 for n in range(6)])
    words = struct.pack(f"<{number + 1}H", *range(number + 1))
    jpegs = [b"\xff\xd8%d" % n for n in range(number % 3 + 1)]
    pixels = bytes(range(2 * 3 * 3))
    text = "Käse %d" % number
    return [
        ("a_bytes", "bytes", None, bytes(number), "bytes", [], bytes(number)),
        ("b_str", "str", None, text.encode(), "str", [], text.encode()),
        ("c_int", "int", 8, struct.pack("<q", -number), "int64", [], struct.pack("<q", -number)),
        ("d_u16", "uint16", 2, struct.pack("<H", 500 + number), "uint16", [],
         struct.pack("<H", 500 + number)),
        ("e_f64", "float64", 8, struct.pack("<d", number / 3), "float64", [],
         struct.pack("<d", number / 3)),
        ("f_json", "json", None, json.dumps({"n": number}).encode(), "json", [],
         json.dumps({"n": number}).encode()),
        ("g_fixed", "ndarray:float32:2,3", 24, floats, "float32", [2, 3], floats),
        ("h_typed", "ndarray:uint16", None, array(None, [number + 1], words), "uint16",
         [number + 1], words),
        ("i_any", "ndarray", None, array(34, [3, 2], floats, width=4), "float32", [3, 2], floats),
        ("j_pil", "pil", None, u32(3, 2, 3) + b"RGB" + pixels, "pil:RGB", [2, 3], pixels),
        ("k_jpegs", "jpeg_array", None, listed(jpegs), "list", [], jpegs),
        ("l_list", "list[png]", None, u32(0) + listed(jpegs), "list", [], jpegs),
        ("m_digits", "str_int", None, str(10 ** 30 + number).encode(), "str_int", [],
         str(10 ** 30 + number).encode()),
        ("n_jpeg", "jpeg", None, jpegs[0], "bytes", [], jpegs[0]),
    ]


def encode_sample(number):
    values = columns(number)
    sizes = [len(value[3]) for value in values if value[2] is None]
    return u32(*sizes) + b"".join(value[3] for value in values)


def encode_shard(config, samples):
    head_bytes = 4 * (len(samples) + 2)
    offsets = [head_bytes + len(config)]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    return u32(len(samples), *offsets) + config + b"".join(samples)


def snappy(raw):
    """Stretches as they are; one that was there before, 1 to 64 bytes long, as a copy of it."""
    length, out = len(raw), b""
    while length >= 128:
        out += bytes([length & 127 | 128])
        length >>= 7
    out += bytes([length])
    for begin in range(0, len(raw), 32):
        part = raw[begin:begin + 32]
        distance = begin - raw.rfind(part, 0, begin)
        if 0 < distance < 65536 and distance <= begin:
            out += bytes([(len(part) - 1) << 2 | 2]) + distance.to_bytes(2, "little")
        else:
            out += bytes([60 << 2, len(part) - 1]) + part
    return out


def brotli(raw):
    """One block that is stored and not compressed, and an empty last one."""
    assert len(raw) <= 65536
    return ((len(raw) - 1) << 4 | 1 << 20).to_bytes(3, "little") + raw + b"\x03"


def zstd(raw):
    return subprocess.run(["zstd", "-q", "-3", "-c"], input=raw, stdout=subprocess.PIPE,
                          check=True).stdout


COMPRESSIONS = {
    "plain": None,
    "gz": lambda raw: gzip.compress(raw, mtime=0),
    "bz2": bz2.compress,
    "zstd": zstd,
    "snappy": snappy,
    "br": brotli,
}


def file_facts(name, content):
    hashes = {"sha1": hashlib.sha1(content).hexdigest(),
              "blake2b": hashlib.blake2b(content).hexdigest()}
    return {"basename": name, "bytes": len(content), "hashes": hashes}


def write_dataset(directory, compression, compress):
    directory.mkdir(parents=True, exist_ok=True)
    facts = {
        "column_encodings": [value[1] for value in columns(0)],
        "column_names": [value[0] for value in columns(0)],
        "column_sizes": [value[2] for value in columns(0)],
        "compression": f"{compression}:3" if compress else None,
        "format": "mds",
        "hashes": ["blake2b", "sha1"],
        "size_limit": 1 << 26,
        "version": 2,
    }
    config = json.dumps(facts, sort_keys=True).encode()
    shards = []
    for shard in range(SAMPLES // SHARD_SAMPLES):
        name = f"shard.{shard:05}.mds"
        first = shard * SHARD_SAMPLES
        raw = encode_shard(config, [encode_sample(first + n) for n in range(SHARD_SAMPLES)])
        entry = dict(facts, samples=SHARD_SAMPLES, raw_data=file_facts(name, raw), zip_data=None)
        if compress:
            content = compress(raw)
            entry["zip_data"] = file_facts(f"{name}.{compression}", content)
            (directory / f"{name}.{compression}").write_bytes(content)
        else:
            (directory / name).write_bytes(raw)
        shards.append(entry)
    index = {"shards": shards, "version": 2}
    (directory / "index.json").write_text(json.dumps(index, sort_keys=True))


def write_expected(path):
    lines = []
    for number in range(SAMPLES):
        for name, _, _, _, kind, shape, content in columns(number):
            items = content if isinstance(content, list) else [content]
            hexes = ",".join(item.hex() for item in items)
            lines.append(f"{number} {name} {kind} {','.join(map(str, shape))} {hexes}\n")
    path.write_text("".join(lines))


def main():
    root = pathlib.Path(sys.argv[1])
    for compression, compress in COMPRESSIONS.items():
        write_dataset(root / compression, compression, compress)
    write_expected(root / "expected.txt")


if __name__ == "__main__":
    main()
