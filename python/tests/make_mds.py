"""Writes the MDS datasets in golden/mds with their original writer, mosaicml-streaming 0.13.0.

Usage: make_mds.py DIRECTORY     Needs mosaicml-streaming, which brings several gigabytes of torch
with it: that is why what it wrote is in the repository.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

from PIL import Image
from streaming import MDSWriter

from mds_samples import COLUMNS, COMPRESSIONS, SAMPLES, sample


def picture(pixels: Any, encoding: str) -> Any:
    """What the writer takes for a value of this encoding."""
    if encoding.startswith("list["):
        return [Image.fromarray(item) for item in pixels]
    return Image.fromarray(pixels) if encoding in ("pil", "png") else pixels


def main(directory: pathlib.Path) -> None:
    for compression in COMPRESSIONS:
        with MDSWriter(out=str(directory / compression), columns=COLUMNS,
                       compression=None if compression == "none" else compression,
                       hashes=["sha1", "xxh3_64"], size_limit=2000) as writer:
            for number in range(SAMPLES):
                writer.write({name: picture(value, COLUMNS[name])
                              for name, value in sample(number).items()})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
