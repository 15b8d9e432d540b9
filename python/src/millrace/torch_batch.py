"""Batches for PyTorch. Imported only where somebody asks for it, as torch is not required."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .batch import Batch, Sample, Samples


def to_torch(batch: Batch) -> dict[str, Any]:
    """The columns with tensors for arrays. Tensors have memory of their own, because they may be
    changed, and that of a batch may not; other columns stay as they are."""
    import torch

    return {name: torch.from_numpy(np.array(column)) if isinstance(column, np.ndarray) else column
            for name, column in batch.items()}


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
