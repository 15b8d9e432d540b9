"""Columns of a batch: one field of all its samples.

Numbers of one shape are a NumPy array with the samples first. Everything else is a column of this
module: a sequence with one item for each sample, made when it is asked for. Bytes are not copied:
items look into the memory of the batch, and keep it. A sample without the field has None.
"""

from __future__ import annotations

import decimal
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from ._memory import Array

# Of pixels by their mode, as Pillow stores them: kind and channels. "1" packs 8 of them in a byte.
PIXELS: dict[str, tuple[str, int]] = {
    "L": ("|u1", 1), "P": ("|u1", 1), "LA": ("|u1", 2), "PA": ("|u1", 2), "RGB": ("|u1", 3),
    "YCbCr": ("|u1", 3), "LAB": ("|u1", 3), "HSV": ("|u1", 3), "RGBA": ("|u1", 4),
    "RGBX": ("|u1", 4), "CMYK": ("|u1", 4), "I": ("<i4", 1), "F": ("<f4", 1), "I;16": ("<u2", 1),
}

TEXT_VALUES: dict[str, Callable[[str], Any]] = {
    "str": str, "json": json.loads, "str_int": int, "str_float": float,
    "str_decimal": decimal.Decimal,
}


class Column:
    """One field of all samples of a batch, as a sequence. Never changes.

    It is no collections.abc.Sequence: those who move a batch to a device or pin its memory rebuild
    every sequence that they find, item by item.
    """

    def __init__(self, data: Array, offsets: Array, present: Array | None) -> None:
        self.data = data  # All bytes, one behind the other.
        self.offsets = offsets  # Sample i has those from offsets[i] up to offsets[i + 1].
        self.present = present  # 0 for a sample without the field; None: all have it.

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        index %= len(self)
        if self.present is not None and not self.present[index]:
            return None
        return self.value(index)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} samples, {self.data.nbytes} bytes)"

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled column has memory of its own."""
        return type(self), self._parts()

    def _parts(self) -> tuple[Any, ...]:
        return self.data, self.offsets, self.present

    def bounds(self, index: int) -> tuple[int, int]:
        return int(self.offsets[index]), int(self.offsets[index + 1])

    def value(self, index: int) -> Any:
        """The item of a sample that has the field."""
        raise NotImplementedError

    def owned(self, index: int) -> Any:
        """The same in memory of its own, for those who keep one sample of a large batch."""
        return self[index]


class BytesColumn(Column):
    """Bytes of any length. Items are memoryviews into the batch: `bytes(item)` copies one."""

    def value(self, index: int) -> memoryview:
        first, end = self.bounds(index)
        return self.data.data[first:end]

    def owned(self, index: int) -> Any:
        item = self[index]
        return None if item is None else bytes(item)

    def tolist(self) -> list[bytes | None]:
        return [self.owned(index) for index in range(len(self))]


class PickleColumn(Column):
    """Objects that were pickled. Each is made when it is asked for, which runs what code it
    holds: there are such columns only with allow_pickle=True."""

    def value(self, index: int) -> Any:
        first, end = self.bounds(index)
        return pickle.loads(self.data.data[first:end])

    def tolist(self) -> list[Any]:
        return list(self)


class TextColumn(Column):
    """Texts, or what is written as text: JSON, and numbers of any size."""

    def __init__(self, data: Array, offsets: Array, present: Array | None,
                 type_name: str = "str") -> None:
        super().__init__(data, offsets, present)
        self.type_name = type_name
        self._value = TEXT_VALUES[type_name]

    def _parts(self) -> tuple[Any, ...]:
        return *super()._parts(), self.type_name

    def value(self, index: int) -> Any:
        first, end = self.bounds(index)
        return self._value(str(self.data.data[first:end], "utf-8"))

    def tolist(self) -> list[Any]:
        return list(self)


class ArrayColumn(Column):
    """Arrays whose shapes differ, or that some samples do not have."""

    def __init__(self, data: Array, offsets: Array, present: Array | None, kind: str,
                 shapes: Array | None) -> None:
        super().__init__(data, offsets, present)
        self.kind = kind
        self.shapes = shapes  # One row for each sample; a row ends at the first all-ones number.

    def _parts(self) -> tuple[Any, ...]:
        return *super()._parts(), self.kind, self.shapes

    def shape(self, index: int) -> tuple[int, ...]:
        if self.shapes is None:
            return ()
        row = self.shapes[index]
        return tuple(int(size) for size in row[row != np.uint64(2**64 - 1)])

    def value(self, index: int) -> Any:
        first, end = self.bounds(index)
        flat = self.data[first:end].view(self.kind)
        shape = self.shape(index)
        return flat.reshape(shape) if shape else flat[0]

    def owned(self, index: int) -> Any:
        item = self[index]
        return item.copy() if isinstance(item, np.ndarray) else item


class PixelColumn(ArrayColumn):
    """Pictures that are not compressed: items are arrays of height, width and channels."""

    def __init__(self, data: Array, offsets: Array, present: Array | None, mode: str,
                 shapes: Array | None) -> None:
        kind, self._channels = PIXELS.get(mode, ("|u1", 1))
        super().__init__(data, offsets, present, kind, shapes)
        self.mode = mode  # Pillow's name of what the channels are.

    def _parts(self) -> tuple[Any, ...]:
        return self.data, self.offsets, self.present, self.mode, self.shapes

    def value(self, index: int) -> Any:
        first, end = self.bounds(index)
        height, width = self.shape(index)
        if self.mode == "1":
            rows = np.unpackbits(self.data[first:end].reshape(height, -1), axis=1)
            return rows[:, :width].astype(bool)
        flat = self.data[first:end].view(self.kind)
        if self._channels == 1:
            return flat.reshape(height, width)
        return flat.reshape(height, width, self._channels)

    def image(self, index: int) -> Any:
        """The picture for Pillow, which must be installed."""
        from PIL import Image

        height, width = self.shape(index)
        first, end = self.bounds(index)
        return Image.frombytes(self.mode, (width, height), self.data[first:end].tobytes())


class ListColumn(Column):
    """Lists of bytes: items are lists of memoryviews into the batch."""

    def __init__(self, data: Array, offsets: Array, present: Array | None,
                 item_offsets: Array) -> None:
        super().__init__(data, offsets, present)
        self.item_offsets = item_offsets

    def _parts(self) -> tuple[Any, ...]:
        return *super()._parts(), self.item_offsets

    def value(self, index: int) -> list[memoryview]:
        first, end = self.bounds(index)
        whole = self.data.data
        return [whole[int(self.item_offsets[item]):int(self.item_offsets[item + 1])]
                for item in range(first, end)]

    def owned(self, index: int) -> Any:
        item = self[index]
        return None if item is None else [bytes(part) for part in item]


class MergedColumn:
    """A field that has other types in other samples: each is taken from the column that has it."""

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        found = (column[index] for column in self.columns)
        return next((item for item in found if item is not None), None)

    def owned(self, index: int) -> Any:
        found = (column.owned(index) for column in self.columns)
        return next((item for item in found if item is not None), None)
