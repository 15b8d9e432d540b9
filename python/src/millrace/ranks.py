"""Which part of a job this process is."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from .errors import InvalidArgumentError


class Ranks(NamedTuple):
    """The place of a process among those of its job."""

    rank: int
    world_size: int
    ranks_per_node: int | None  # None: not known.


def _number(name: str) -> int | None:
    text = os.environ.get(name)
    if text is None or text == "":
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"${name} is '{text}', which is no number") from None


def _process_group() -> Any:
    """torch.distributed where the program has initialised it. Imports nothing by itself."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


def find_ranks(rank: int | None = None, world_size: int | None = None) -> Ranks:
    """What was given; else torch.distributed's; else $RANK and $WORLD_SIZE; else a job of one.

    Raises InvalidArgumentError when only one of both is known, or they do not fit each other.
    """
    if rank is None and world_size is None:
        group = _process_group()
        if group is not None:
            rank, world_size = group.get_rank(), group.get_world_size()
        else:
            rank, world_size = _number("RANK"), _number("WORLD_SIZE")
            if rank is None and world_size is None:
                return Ranks(0, 1, 1)
    if rank is None or world_size is None:
        raise InvalidArgumentError(f"rank is {rank} and world_size is {world_size}: give both "
                                   "(or set both $RANK and $WORLD_SIZE), or none of them")
    if not 0 <= rank < world_size:
        raise InvalidArgumentError(f"rank {rank} is not among 0 to {world_size - 1}")
    local = _number("LOCAL_WORLD_SIZE")
    fits = local is not None and local > 0 and world_size % local == 0
    return Ranks(rank, world_size, local if fits else None)
