"""Writes the same samples as MDS, LitData chunks and WebDataset shards, with their own writers.

Usage: write_sets.py DIRECTORY SAMPLES BYTES [FORMAT...]

Makes DIRECTORY/mds, litdata and tar, or those of them that are named.
"""

import pathlib
import sys

import numpy as np

SHARD_BYTES = 64 << 20


def contents(samples, size):
    """Bytes that do not compress, another ones for each sample."""
    noise = np.random.default_rng(7).bytes(size + samples)
    for number in range(samples):
        yield noise[number:number + size]


def write_mds(directory, samples, size):
    from streaming import MDSWriter
    with MDSWriter(out=str(directory), columns={"data": "bytes", "label": "int"},
                   size_limit=SHARD_BYTES) as writer:
        for number, data in enumerate(contents(samples, size)):
            writer.write({"data": data, "label": number % 1000})


def write_litdata(directory, samples, size):
    from litdata.streaming.cache import Cache
    cache = Cache(str(directory), chunk_bytes=SHARD_BYTES)
    for number, data in enumerate(contents(samples, size)):
        cache[number] = {"data": data, "label": number % 1000}
    cache.done()
    cache.merge()


def write_tar(directory, samples, size):
    import webdataset
    directory.mkdir()
    with webdataset.ShardWriter(str(directory / "%05d.tar"), maxcount=samples, maxsize=SHARD_BYTES,
                                verbose=0) as writer:
        for number, data in enumerate(contents(samples, size)):
            writer.write({"__key__": f"{number:08}", "bin": data, "cls": str(number % 1000)})


WRITERS = {"mds": write_mds, "litdata": write_litdata, "tar": write_tar}


def main(directory, samples, size, formats):
    directory.mkdir(parents=True)
    for name in formats or WRITERS:
        WRITERS[name](directory / name, samples, size)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
