"""Batches for PyTorch. Imported only where somebody asks for it, as torch is not required."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .batch import Batch, Sample, Samples


def to_torch(batch: Batch) -> dict[str, Any]:
    """The columns with tensors for arrays. Tensors have memory of their own, because they may be
    changed, and that of a batch may not; other columns stay as they are, and so do arrays of a type
    that this release of torch does not have, as uint16."""
    return {name: _tensor(column) if isinstance(column, np.ndarray) else column
            for name, column in batch.items()}


def _tensor(column: np.ndarray[Any, Any]) -> Any:
    import torch

    try:
        return torch.from_numpy(np.array(column))
    except TypeError:
        return column


def collate(samples: Sequence[Any]) -> Any:
    """For DataLoader(ds, collate_fn=millrace.collate): whole columns, as Loader(torch=True) gives
    them, and not one object for each sample. Samples that went through a `transform` are put
    together by torch's own rules, which have none for no samples: that is an empty dict."""
    if isinstance(samples, Samples):
        return to_torch(samples.batch)
    if not samples:
        return {}
    from torch.utils.data import default_collate

    return default_collate([dict(sample) if isinstance(sample, Sample) else sample
                            for sample in samples])
