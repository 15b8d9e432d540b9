"""The samples of the MDS datasets in golden/mds: what was written, and must be read back."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np

SAMPLES = 7
COMPRESSIONS = ("none", "zstd", "gz", "bz2", "snappy", "br")

# Of mosaicml-streaming, all but "pkl" and those of pictures that are compressed with losses.
COLUMNS = {
    "a_bytes": "bytes", "a_text": "str", "an_int": "int", "a_uint8": "uint8", "an_int16": "int16",
    "a_uint64": "uint64", "a_half": "float16", "a_single": "float32", "a_double": "float64",
    "int_text": "str_int", "float_text": "str_float", "decimal_text": "str_decimal",
    "a_json": "json", "any_array": "ndarray", "typed_array": "ndarray:int16",
    "shaped_array": "ndarray:float32:2,3", "pixels": "pil", "grey": "pil", "picture": "png",
    "pictures": "list[png]",
}


def pixels(number: int, channels: int) -> Any:
    """A tiny picture, another one for each number."""
    shape = (4 + number % 2, 5, channels) if channels > 1 else (4 + number % 2, 5)
    return ((np.arange(np.prod(shape)) * 7 + number) % 256).astype(np.uint8).reshape(shape)


def sample(number: int) -> dict[str, Any]:
    """The values of one sample; pictures as arrays."""
    return {
        "a_bytes": bytes(range(number)),
        "a_text": f"sample {number} äö€",
        "an_int": -number,
        "a_uint8": np.uint8(250 + number % 6),
        "an_int16": np.int16(-300 * number),
        "a_uint64": np.uint64(2**64 - 1 - number),
        "a_half": np.float16(number / 4),
        "a_single": np.float32(number / 3),
        "a_double": np.float64(number / 7),
        "int_text": 10**30 + number,
        "float_text": 0.1 * number,
        "decimal_text": decimal.Decimal(number) / 8,
        "a_json": {"number": number, "list": [1, None, "x"]},
        "any_array": np.arange(number * 2 + 2, dtype=np.int32).reshape(2, number + 1),
        "typed_array": np.arange(number + 1, dtype=np.int16),
        "shaped_array": np.full((2, 3), number, dtype=np.float32),
        "pixels": pixels(number, 3),
        "grey": pixels(number, 1),
        "picture": pixels(number, 3),
        "pictures": [pixels(number + item, 3) for item in range(number % 3)],
    }
