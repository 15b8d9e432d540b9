"""Positions for torch's DataLoader, kept in the main process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from . import _library
from .dataset import Dataset, Place, state_text
from .loader import check_engine, checked_dataset, dealing_options, weight_shares
from .ranks import find_ranks

Item = TypeVar("Item")


class BatchSampler:
    """What a rank takes, step by step: `DataLoader(ds, batch_sampler=BatchSampler(ds, 256))`.

    Items are lists of (epoch, position), which Dataset takes; of a mix whose weights were changed
    also the state that has them, for workers who do not know. Iterating gives one epoch, and the
    next time the next one; an iteration that was left early is begun again. States are those of
    Loader, for every number of workers and ranks and every batch size.

    A DataLoader asks for batches before the training takes them. So state_dict() needs to know how
    many the training took in this epoch: give it as `step`, or loop over counted(dataloader).
    torchdata's StatefulDataLoader does this by itself.

    Arguments as Loader's.
    """

    def __init__(self, dataset: Dataset, batch_size: int, *, rank: int | None = None,
                 world_size: int | None = None, ranks_per_node: int | None = None,
                 replication: int = 1, drop_last: bool = False, pad: bool = False,
                 epochs: int | None = None, epoch: int = 0,
                 state: Mapping[str, Any] | None = None) -> None:
        self._handle: _library.Handle | None = None
        self._dataset = checked_dataset(dataset, "BatchSampler")
        self.batch_size = batch_size
        self.drop_last = drop_last
        ranks = find_ranks(rank, world_size)
        check_engine(dataset, ranks_per_node or ranks.ranks_per_node)
        self._options = dealing_options(ranks, batch_size, drop_last, pad, replication,
                                        ranks_per_node, epochs, epoch, state)
        self._unfinished = False
        self._taken: int | None = None  # Steps of this epoch that counted() handed out.
        self._counting = False  # Whether a counted() is under way.
        self._weights: str | None = None  # The state whose weights hold; None: the dataset's own.
        if state is not None:
            self._take_weights(state_text(state))

    @property
    def handle(self) -> _library.Handle:
        """The native sampler, which is opened if it is not yet."""
        if self._handle is None:
            handle = _library.Handle()
            _library.call(_library.library().mr_sampler_open, self._dataset.handle,
                          _library.options_text(self._options), ctypes.byref(handle))
            self._handle = handle
        return self._handle

    def __getstate__(self) -> dict[str, Any]:
        options = self._options | {"state": self.state_dict()["millrace"]}
        options.pop("epoch", None)
        return self.__dict__ | {"_handle": None, "_options": options, "_unfinished": False,
                                "_taken": None, "_counting": False}

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            _library.library().mr_sampler_close(self._handle)

    def __len__(self) -> int:
        """The steps of this epoch, from where the sampler was opened or loaded."""
        return int(_library.library().mr_sampler_steps(self.handle))

    def __iter__(self) -> Iterator[list[Place]]:
        if self._unfinished and _library.library().mr_sampler_step(self.handle) == len(self):
            self._next()  # Who counts the steps never asks for the end behind the last.
        elif self._unfinished:
            _library.call(_library.library().mr_sampler_rewind, self.handle)
        self._taken = 0 if self._counting else None
        while (positions := self._next()) is not None:
            yield positions

    def _next(self) -> list[Place] | None:
        """The positions of the next step; None at the end of the epoch."""
        import numpy as np  # Not before first use.

        library = _library.library()
        positions = np.empty(self.batch_size, np.uint64)  # Memory only for what is written to.
        count = ctypes.c_size_t()
        code = _library.call(library.mr_sampler_next, self.handle, positions.ctypes.data,
                             len(positions), ctypes.byref(count))
        self._unfinished = code != _library.END
        if code == _library.END:
            return None
        epoch, found = library.mr_sampler_epoch(self.handle), positions[:count.value].tolist()
        if self._weights is not None:
            return [(epoch, position, self._weights) for position in found]
        return [(epoch, position) for position in found]

    def counted(self, loader: Iterable[Item]) -> Iterator[Item]:
        """One epoch of a DataLoader over this sampler, counting what the training takes."""
        self._taken, self._counting = 0, True
        try:
            for item in loader:
                self._taken += 1
                yield item
        finally:
            self._counting = False

    @property
    def epoch(self) -> int:
        return int(_library.library().mr_sampler_epoch(self.handle))

    def set_epoch(self, epoch: int) -> None:
        """Begins that epoch. Not needed to go on to the next one."""
        _library.call(_library.library().mr_sampler_set_epoch, self.handle,
                      _library.checked_epoch(epoch))
        self._restart()

    def state_dict(self, step: int | None = None) -> dict[str, Any]:
        """Where the job is, behind `step` batches of this epoch (counted from where it was opened
        or loaded); without it behind those that counted() handed out, or else behind all that were
        asked for."""
        library = _library.library()
        if step is None:
            step = self._taken
        if step is None:
            step = library.mr_sampler_step(self.handle)
        return {"millrace": _library.text(library.mr_sampler_state, self.handle, step)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, of a sampler or of a Loader."""
        text = state_text(state)
        _library.call(_library.library().mr_sampler_load_state, self.handle, text.encode())
        self._take_weights(text)
        self._restart()

    def set_weights(self, weights: Sequence[float]) -> None:
        """Changes the mix, soon behind what the DataLoader has asked for. All ranks do so at the
        same step."""
        library = _library.library()
        _library.call(library.mr_sampler_set_shares, self.handle, weight_shares(weights))
        self._take_weights(_library.text(library.mr_sampler_state, self.handle,
                                         library.mr_sampler_step(self.handle)))

    def _take_weights(self, state: str) -> None:
        """From now on these weights hold. Only a mix has any."""
        self._weights = state if self._dataset.is_mixed else None

    def _restart(self) -> None:
        self._unfinished = False
        self._taken = None

    def digest(self) -> str:
        """Of all positions that were handed out, as Loader's."""
        return _library.text(_library.library().mr_sampler_digest, self.handle)
