"""Millrace: training data from object storage, in a deterministic order that can be resumed.

    ds = millrace.Dataset("imagenet@v2", shuffle=True, seed=17)
    loader = millrace.Loader(ds, batch_size=256)
    for batch in loader:
        ...
    state = loader.state_dict()

Importing it loads nothing native and starts nothing; that happens when a dataset is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._library import library
from .batch_sampler import BatchSampler
from .dataset import Dataset, Source
from .errors import (ConflictError, CorruptionError, DeadlineExceededError, InvalidArgumentError,
                     MillraceError, NotFoundError, PermissionDeniedError, UnavailableError,
                     UnsupportedError)
from .loader import Loader, add_digests
from .ranks import Ranks, find_ranks
from .writer import Writer

if TYPE_CHECKING:
    from .batch import Batch, Sample, Samples, rng
    from .torch_batch import collate, to_torch

__all__ = [
    "Batch", "BatchSampler", "ConflictError", "CorruptionError", "Dataset",
    "DeadlineExceededError", "InvalidArgumentError", "Loader", "MillraceError", "NotFoundError",
    "PermissionDeniedError", "Ranks", "Sample", "Samples", "Source", "UnavailableError",
    "UnsupportedError", "Writer", "add_digests", "collate", "find_ranks", "rng",
    "to_torch",
]

__version__: str  # The release of the native library, which is loaded to tell.

if not TYPE_CHECKING:
    # What takes NumPy is imported when it is asked for, as a first batch is on its way by then.
    _LATER = {"Batch": "batch", "Sample": "batch", "Samples": "batch", "rng": "batch",
              "collate": "torch_batch", "to_torch": "torch_batch"}

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return library().mr_release().decode()
        if name not in _LATER:
            raise AttributeError(f"module 'millrace' has no attribute '{name}'")
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value
