"""Batches and samples: what a dataset gives and a training loop takes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from . import _library
from ._memory import Array, BatchMemory, view
from .columns import (ArrayColumn, BytesColumn, Column, ListColumn, MergedColumn, PickleColumn,
                      PixelColumn, TextColumn, TEXT_VALUES)

AnyColumn: TypeAlias = Array | Column | MergedColumn

_NUMBERS = {"int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint8": "|u1",
            "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "float16": "<f2",
            "float32": "<f4", "float64": "<f8"}


class Sample(dict[str, Any]):
    """One sample: its fields by their names, and where it stands.

    `seed` depends on the seed of the dataset, the epoch and the position, and on nothing else:
    millrace.rng(sample) draws the same numbers in every topology and after every resume.
    """

    def __init__(self, fields: dict[str, Any] | None = None, *, epoch: int = 0, position: int = 0,
                 source: int = 0, sample_id: int = 0, seed: int = 0) -> None:
        super().__init__(fields or {})
        self.epoch = epoch
        self.position = position  # In the epoch.
        self.source = source  # The number of its dataset.
        self.sample_id = sample_id  # Its number in that dataset.
        self.seed = seed


class Batch(dict[str, Any]):
    """Samples in columns, by their names: NumPy arrays, and columns of millrace.columns.

    The memory belongs to the library and is used again when the last array, column and item that
    looks into it is gone. It never changes, so arrays are read-only: copy what you change.
    """

    def __init__(self, columns: dict[str, Any], *, epoch: int, positions: Array, sources: Array,
                 sample_ids: Array, seeds: Array) -> None:
        super().__init__(columns)
        self.epoch = epoch
        # One for each sample, as Sample has them.
        self.positions = positions
        self.sources = sources
        self.sample_ids = sample_ids
        self.seeds = seeds

    @property
    def samples(self) -> int:
        """How many there are; len() counts columns, as that of every dict."""
        return len(self.positions)

    def sample(self, index: int) -> Sample:
        """One sample, in memory of its own."""
        fields = {name: _owned(column, index) for name, column in self.items()}
        return Sample(fields, epoch=self.epoch, position=int(self.positions[index]),
                      source=int(self.sources[index]), sample_id=int(self.sample_ids[index]),
                      seed=int(self.seeds[index]))

    def rng(self, index: int) -> np.random.Generator:
        """Random numbers of one sample's own."""
        return generator(int(self.seeds[index]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (dict(self), self.epoch, self.positions, self.sources, self.sample_ids,
                            self.seeds)


class Samples(Sequence[Sample]):
    """The samples of a batch one by one, made when they are asked for."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def __len__(self) -> int:
        return self.batch.samples

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self.batch.sample(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self.batch.sample(index % len(self))

    def __iter__(self) -> Iterator[Sample]:
        return (self.batch.sample(index) for index in range(len(self)))


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=seed))


def rng(sample: Sample) -> np.random.Generator:
    """Random numbers of a sample's own, for augmentations: the same in every topology and after
    every resume, other ones in every epoch."""
    return generator(sample.seed)


def _owned(column: AnyColumn, index: int) -> Any:
    if isinstance(column, np.ndarray):
        item = column[index]
        return item.copy() if isinstance(item, np.ndarray) else item
    return column.owned(index)


def _unpickled(columns: dict[str, Any], epoch: int, positions: Array, sources: Array,
               sample_ids: Array, seeds: Array) -> Batch:
    return Batch(columns, epoch=epoch, positions=positions, sources=sources,
                 sample_ids=sample_ids, seeds=seeds)


def _column(memory: BatchMemory, samples: int, native: _library.Column) -> AnyColumn:
    """The column as its type asks for it."""
    kind = native.type.decode()
    shape = tuple(native.shape[:native.dimensions]) if native.uniform else ()
    if kind in _NUMBERS and native.uniform:
        return view(memory, native.data, (samples, *shape), _NUMBERS[kind])
    data = view(memory, native.data, (native.data_bytes,), "|u1")
    offsets = view(memory, native.offsets, (samples + 1,), "<u8")
    present = view(memory, native.present, (samples,), "|u1") if native.present else None
    if kind in TEXT_VALUES:
        return TextColumn(data, offsets, present, kind)
    if kind == "pickle":
        return PickleColumn(data, offsets, present)
    if kind == "list":
        items = int(offsets[-1]) + 1
        return ListColumn(data, offsets, present, view(memory, native.item_offsets, (items,),
                                                       "<u8"))
    shapes = _shapes(memory, samples, native, shape)
    if kind in _NUMBERS:
        return ArrayColumn(data, offsets, present, _NUMBERS[kind], shapes)
    if kind.startswith("pil:"):
        return PixelColumn(data, offsets, present, kind.removeprefix("pil:"), shapes)
    return BytesColumn(data, offsets, present)


def _shapes(memory: BatchMemory, samples: int, native: _library.Column,
            shape: tuple[int, ...]) -> Array | None:
    if native.uniform:
        return np.broadcast_to(np.array(shape, dtype="<u8"), (samples, len(shape)))
    if not native.shapes:
        return None
    return view(memory, native.shapes, (samples, native.dimensions), "<u8")


def batch_of(handle: _library.Handle) -> Batch:
    """The batch behind a handle, of which it takes the reference."""
    library = _library.library()
    memory = BatchMemory(handle)
    samples = library.mr_batch_samples(handle)
    columns: dict[str, Any] = {}
    native = _library.Column()
    for index in range(library.mr_batch_columns(handle)):
        library.mr_batch_column(handle, index, ctypes.byref(native))
        name = native.name.decode()
        column = _column(memory, samples, native)
        columns[name] = _merged(columns[name], column) if name in columns else column

    def numbers(function: Any) -> Array:
        return view(memory, function(handle), (samples,), "<u8")

    return Batch(columns, epoch=library.mr_batch_epoch(handle),
                 positions=numbers(library.mr_batch_positions),
                 sources=numbers(library.mr_batch_sources),
                 sample_ids=numbers(library.mr_batch_sample_ids),
                 seeds=numbers(library.mr_batch_seeds))


def _merged(first: AnyColumn, second: AnyColumn) -> MergedColumn:
    """Columns of one name; none of them is an array, since no sample is in all of them."""
    columns = first.columns if isinstance(first, MergedColumn) else [first]
    return MergedColumn([*columns, second])  # type: ignore[list-item]
