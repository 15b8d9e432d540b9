"""The loader: batches of one rank, read ahead by the native engine."""

from __future__ import annotations

import ctypes
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _library
from .dataset import Dataset, state_text
from .errors import InvalidArgumentError
from .ranks import Ranks, find_ranks

if TYPE_CHECKING:
    from .batch import Batch

# How long a wait in the library lasts before Python may look at its signals.
_SLICE_S = 0.2
# No wait at all; 0 would be for ever.
_AT_ONCE_S = 1e-6
_NOTHING_DELIVERED = f"{0:032x}:0"


def dealing_options(ranks: Ranks, batch_size: int, drop_last: bool, pad: bool, replication: int,
                    ranks_per_node: int | None, epochs: int | None, epoch: int,
                    state: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options that loaders and samplers share."""
    if drop_last and pad:
        raise InvalidArgumentError("drop_last and pad exclude each other")
    options: dict[str, Any] = {
        "batch": batch_size, "rank": ranks.rank, "world": ranks.world_size,
        "last": "drop" if drop_last else "pad" if pad else "even", "replication": replication,
    }
    nodes = ranks_per_node or ranks.ranks_per_node
    if nodes is not None:
        options["ranks_per_node"] = nodes
    if epochs is not None:
        if epochs < 1:
            raise InvalidArgumentError(f"epochs is {epochs}, and a job has at least one")
        options["epochs"] = epochs
    if state is not None:
        options["state"] = state_text(state)
    elif epoch:
        options["epoch"] = _library.checked_epoch(epoch)
    return options


def checked_dataset(dataset: Dataset, taker: str) -> Dataset:
    """The dataset, unless it is only the name of one."""
    if not isinstance(dataset, Dataset):
        raise InvalidArgumentError(f"{taker} takes a millrace.Dataset, and not {dataset!r}: write "
                                   f"{taker}(millrace.Dataset(...), batch_size)")
    return dataset


def check_engine(dataset: Dataset, ranks_per_node: int | None) -> None:
    """Refuses ranks of one machine that would each read all of it by themselves."""
    if dataset.engine == "process" and (ranks_per_node or 1) > 1:
        raise InvalidArgumentError(
            f"engine='process' is for one process of a machine, and here are {ranks_per_node} "
            "ranks, each with a cache of its own: use engine='daemon', which they share")


def weight_shares(weights: Sequence[float]) -> bytes:
    """Weights as the native interface takes them."""
    return _library.options_text([{"weight": weight} for weight in weights])


class Loader:
    """Iterating over it gives the batches of one epoch, and the next time those of the next.

    Every rank has equally many batches, and every sample of the dataset is in one of them: the rest
    is dealt evenly over the last two steps, unless `drop_last` leaves it out or `pad` fills up with
    samples from the beginning. An iteration that was left early goes on where it stopped. Close it,
    or use it in a `with`, to end its reading at once; it stays in the process that made it.

    `epochs` is how many the job has, where that is known: then nothing is fetched for a later one,
    and asking for it is an error. Without it the next epoch is fetched before this one ends.

    `rank` and `world_size` are those of torch.distributed where it is initialised, else $RANK and
    $WORLD_SIZE, else 0 of 1. `prefetch` is how many batches are read ahead. `on_error` is what
    becomes of a sample that cannot be had: "raise", "skip" or "substitute"; without it what the
    Dataset says. `collate` is called with each Batch, and what it returns is what iterating gives;
    `torch=True` is short for collate=millrace.to_torch. A wait for a batch that takes `watchdog`
    seconds (60; 0: never) is logged, and stats()["stuck"] says where that batch is. `progress=True`
    shows a bar on rank 0, where tqdm is installed.
    """

    def __init__(self, dataset: Dataset, batch_size: int, *, rank: int | None = None,
                 world_size: int | None = None, ranks_per_node: int | None = None,
                 replication: int = 1, drop_last: bool = False, pad: bool = False,
                 prefetch: int | None = None, on_error: str | None = None,
                 failures_max: int | None = None, sample_timeout: float | None = None,
                 watchdog: float | None = None, epochs: int | None = None, epoch: int = 0,
                 state: Mapping[str, Any] | None = None, torch: bool = False,
                 collate: Callable[[Batch], Any] | None = None, progress: bool = False) -> None:
        self._handle: _library.Handle | None = None
        self._opener = 0  # The process that opened it.
        self._is_closed = False
        # Held where it is opened and closed, and by those that other threads may call meanwhile.
        self._using = threading.RLock()
        self._inside = False  # Whether batches of an epoch were handed out, and not yet its end.
        self._dataset = checked_dataset(dataset, "Loader")
        if dataset.transform is not None:
            raise InvalidArgumentError("a Loader gives whole batches, and a Dataset's transform is "
                                       "for samples one by one: give the Loader a collate=, or the "
                                       "Dataset to a DataLoader")
        self._ranks = find_ranks(rank, world_size)
        check_engine(dataset, ranks_per_node or self._ranks.ranks_per_node)
        self._collate = collate
        if torch:
            if collate is not None:
                raise InvalidArgumentError("torch=True is a collate by itself; give one of them")
            from .torch_batch import to_torch
            self._collate = to_torch
        self._progress = progress and self._ranks.rank == 0
        self._options = dealing_options(self._ranks, batch_size, drop_last, pad, replication,
                                        ranks_per_node, epochs, epoch, state)
        self._options["on_error"] = on_error or dataset.on_error
        for name, value in (("prefetch", prefetch), ("failures_max", failures_max),
                            ("sample_timeout", sample_timeout), ("watchdog", watchdog)):
            if value is not None:
                self._options[name] = value

    @property
    def handle(self) -> _library.Handle:
        """The native loader, which is opened if it is not yet."""
        if self._handle is not None:
            return self._handle
        with self._using:
            if self._is_closed:
                raise InvalidArgumentError("this Loader is closed: take its state_dict() before, "
                                           "and give it to another one as state=")
            if self._handle is None:
                handle = _library.Handle()
                _library.call(_library.library().mr_loader_open, self._dataset.handle,
                              _library.options_text(self._options), ctypes.byref(handle))
                self._handle, self._opener = handle, os.getpid()
            return self._handle

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a Loader stays in its process: pickle its Dataset, and its state_dict()")

    def close(self) -> None:
        """Ends reading ahead, and the Loader. Batches that were handed out stay."""
        with self._using:
            self._is_closed = True
            handle, self._handle = self._handle, None
            if handle is not None:
                _library.library().mr_loader_close(handle)

    def __del__(self) -> None:
        # A forked copy has nothing to end: the threads are its parent's.
        if getattr(self, "_handle", None) is not None and self._opener == os.getpid():
            self.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next_batch(self, timeout: float | None = None) -> Batch | None:
        """The next batch of the epoch; None at its end, and after that the next epoch begins.
        TimeoutError where it is not there within `timeout` seconds. After a failure the next call
        tries the same batch again."""
        handle = _library.Handle()
        error = _library.Handle()

        def ask(wait_s: float) -> int:
            return int(_library.library().mr_loader_next(self.handle, wait_s, ctypes.byref(handle),
                                                         ctypes.byref(error)))

        end = math.inf if timeout is None else time.monotonic() + timeout
        code = ask(_AT_ONCE_S)
        # NumPy takes a tenth of a second, in which the first batch is on its way.
        from .batch import batch_of

        while code == _library.AGAIN:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no batch within {timeout} seconds")
            code = ask(min(_SLICE_S, left))
        if code not in (_library.OK, _library.END):
            raise _library.failure(code, error)
        self._inside = code == _library.OK
        return batch_of(handle) if self._inside else None

    def __iter__(self) -> Iterator[Any]:
        # Some count batches and never ask for the one behind the last: their epoch has ended too.
        if self._inside and self.step == len(self):
            self.next_batch()
        bar = None
        try:
            while (batch := self.next_batch()) is not None:
                if bar is None and self._progress:
                    bar = self._bar()  # Only now the loader is in the epoch of this batch.
                if bar is not None:
                    bar.update()
                yield self._collate(batch) if self._collate else batch
        finally:
            if bar is not None:
                bar.close()

    def _bar(self) -> Any:
        """For the epoch whose first batch, or first one of this iteration, was just taken."""
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._progress = False
            return None
        return tqdm(total=len(self), initial=self.step - 1, desc=f"epoch {self.epoch}",
                    unit="batch")

    def __len__(self) -> int:
        """The batches of this epoch, from where the loader was opened or loaded."""
        return int(_library.library().mr_loader_steps(self.handle))

    @property
    def step(self) -> int:
        """How many of them were handed out."""
        return int(_library.library().mr_loader_step(self.handle))

    @property
    def epoch(self) -> int:
        return int(_library.library().mr_loader_epoch(self.handle))

    def set_epoch(self, epoch: int) -> None:
        """Begins that epoch. Not needed to go on to the next one."""
        _library.call(_library.library().mr_loader_set_epoch, self.handle,
                      _library.checked_epoch(epoch))
        self._inside = False

    def state_dict(self) -> dict[str, Any]:
        """Where the job is, behind the batches that were handed out: one state for all ranks, for
        any other number of them, and for any batch size."""
        return {"millrace": _library.text(_library.library().mr_loader_state, self.handle)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state. InvalidArgumentError names the field in which it is of another
        job."""
        _library.call(_library.library().mr_loader_load_state, self.handle,
                      state_text(state).encode())
        self._inside = False

    def set_weights(self, weights: Sequence[float]) -> None:
        """Changes the mix, soon behind what was handed out. All ranks do so at the same step."""
        _library.call(_library.library().mr_loader_set_shares, self.handle, weight_shares(weights))

    def stats(self) -> dict[str, Any]:
        """What was delivered, how many samples of this epoch are dropped or padded over all ranks,
        where time went (waiting, store, decode, consumer), and which samples failed. From any
        thread."""
        with self._using:
            return dict(json.loads(_library.text(_library.library().mr_loader_stats, self.handle)))

    def digest(self) -> str:
        """Proof of what this rank delivered. millrace.add_digests() of all ranks is the job's,
        which is the same for every topology. (Of ranks that see the same samples by `replication`,
        take one of each group.) From any thread."""
        with self._using:
            return _library.text(_library.library().mr_loader_digest, self.handle)


def add_digests(*digests: str) -> str:
    """The digest of all ranks from those of each."""
    if not digests or not all(isinstance(digest, str) for digest in digests):
        raise InvalidArgumentError("give the digests one by one: add_digests(*digests)")
    total = _NOTHING_DELIVERED
    for digest in digests:
        total = _library.text(_library.library().mr_digest_add, total.encode(), digest.encode())
    return total
