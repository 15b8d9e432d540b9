"""Memory of the native library, seen as NumPy arrays without copying it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _library

Array: TypeAlias = npt.NDArray[Any]


class BatchMemory:
    """Holds one reference of a batch. It goes when the last array that looks into it goes."""

    __slots__ = ("handle", "_release")

    def __init__(self, handle: _library.Handle) -> None:
        self.handle = handle
        # Bound here: when the interpreter ends, modules may be gone before the last array.
        self._release = _library.library().mr_batch_release

    def __del__(self) -> None:
        self._release(self.handle)


class _Window:
    """What NumPy makes an array of, and keeps for as long as the array lives."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: BatchMemory, address: int, shape: tuple[int, ...],
                 kind: str) -> None:
        self.memory = memory
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": shape,
                                    "typestr": kind}


def view(memory: BatchMemory, address: int | None, shape: tuple[int, ...], kind: str) -> Array:
    """A read-only array over memory of a batch, which lives as long as the array."""
    if not address or 0 in shape:
        return np.empty(shape, dtype=kind)
    return np.asarray(_Window(memory, address, shape, kind))
