"""Datasets: what a job reads, and in which order."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import json
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _library
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from .batch import Batch, Sample  # It takes NumPy, which is imported when a batch is read.

Shuffle: TypeAlias = bool | Literal["block", "full", "none"]
# A position of an epoch, perhaps with the state whose weights hold; or of the current epoch.
Place: TypeAlias = tuple[int, int] | tuple[int, int, str]
Index: TypeAlias = int | Place
Transform: TypeAlias = "Callable[[Sample], Any]"

_ORDERS: dict[Shuffle, str] = {True: "block", False: "none", "block": "block", "full": "full",
                               "none": "none"}
_AT_A_TIME = 64  # Samples that iterating over a dataset reads at once.


@dataclasses.dataclass(frozen=True)
class Source:
    """One dataset of a mix. All of a mix have a weight, or all a repeat, or all a choose."""

    name: str | os.PathLike[str]  # As Dataset takes it.
    weight: float | None = None  # Its part of an epoch, in proportion to those of all.
    repeat: float | None = None  # How often its samples stand in an epoch; 0.5 is a half.
    choose: int | None = None  # How many samples it gives to an epoch.
    reader: str | None = None
    directory: str | None = None
    split: str | None = None
    split_seed: int | None = None

    def options(self) -> dict[str, Any]:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)
                 if getattr(self, field.name) is not None}
        return given | {"name": _place(self.name)}


def _place(name: str | os.PathLike[str]) -> str:
    """A directory by its whole path, because a daemon and other processes have other ones to start
    from. Names of versions and URLs stay as they are."""
    text = os.fspath(name)
    if isinstance(name, os.PathLike) or text.startswith(("./", "../", "~")) or text in (".", ".."):
        return str(pathlib.Path(text).expanduser().absolute())
    return text


class Dataset:
    """Samples by their place in an epoch: `ds[i]` is the sample at position i of the order.

    The order is a function of content, seed and epoch, so a Dataset is its options and nothing
    else: that is what is pickled, with the digests of what they were found to mean once it was
    used. It is opened at first use, in each process, and until then there is no thread and no
    socket. Any number of threads may use one, and so may processes that were
    forked.

    `data` is a version ("imagenet@v2"), a directory, a URL ("s3://bucket/prefix"), or several of
    them or Sources, which are then mixed. A path object is a directory; a text is one where it
    begins with "/", "./", "../" or "~".

    `shuffle` is True or "block" (windows of blocks, fetched once), "full" (all samples, which costs
    more reads), or False or "none". `split` is a part by rule: "0-90/100" takes 90 of every 100
    samples, "90-100/100" the other ones. `reader` is "files", "grouped", "webdataset", "mds" or
    "auto". `allow_pickle` lets columns of MDS that are pickled be read, which runs what code they
    hold; `verify_hashes` compares shards of MDS as a whole with the hashes of their index, before
    the first sample of them is read. `weights` mixes by these proportions; `epoch_samples` is then
    the size of an epoch. `transform` is called with each Sample that is taken one by one.
    `on_error` is what becomes of a sample that cannot be had: "raise", "skip" or "substitute"; a
    Loader takes it over. `engine` is where reading happens: "daemon", "process", or "auto".
    `settings` are Millrace's settings by name, as {"store": "s3://..."}.
    """

    def __init__(self, data: str | os.PathLike[str] | Source | Sequence[Any], *,
                 shuffle: Shuffle = True, seed: int = 0, split: str | None = None,
                 reader: str | None = None, directory: str | None = None,
                 weights: Sequence[float] | None = None, epoch_samples: int | None = None,
                 allow_pickle: bool = False, verify_hashes: bool = False,
                 transform: Transform | None = None, on_error: str = "raise",
                 engine: str = "auto", settings: Mapping[str, str] | None = None,
                 window_rows: int | None = None, state: Mapping[str, Any] | None = None,
                 run: str | None = None, timeout: float | None = None) -> None:
        if shuffle not in _ORDERS:
            raise InvalidArgumentError(f"shuffle is {shuffle!r}: give True or 'block', 'full', or "
                                       "False or 'none'")
        defaults = {"reader": reader, "directory": directory, "split": split,
                    "allow_pickle": allow_pickle or None, "verify_hashes": verify_hashes or None}
        options: dict[str, Any] = {
            "datasets": _sources(data, weights, defaults), "order": _ORDERS[shuffle], "seed": seed,
            "on_error": on_error, "engine": engine, "epoch_samples": epoch_samples,
            "settings": dict(settings) if settings else None, "window_rows": window_rows,
            "state": None if state is None else state_text(state), "run": run, "timeout": timeout,
            # All copies in other processes have it, and so one sampler hears of what they lose.
            "job": os.urandom(16).hex(),
        }
        self._options = {name: value for name, value in options.items() if value is not None}
        self._forget()
        self.transform = transform
        self.epoch = 0  # Of plain positions; set_epoch() changes it.

    @property
    def is_mixed(self) -> bool:
        """Whether it is made of several datasets."""
        return len(self._options["datasets"]) > 1

    @property
    def engine(self) -> str:
        """Where reading shall happen; info() says where it does."""
        return str(self._options["engine"])

    @property
    def on_error(self) -> str:
        """What becomes of a sample that cannot be had."""
        return str(self._options["on_error"])

    def _forget(self) -> None:
        self._handle: _library.Handle | None = None
        self._opener = 0  # The process that opened it.
        self._opening = (os.getpid(), threading.Lock())
        self._changed: Dataset | None = None  # This one, with the weights of a state.

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self._pinned(), "transform": self.transform, "epoch": self.epoch}

    def _pinned(self) -> dict[str, Any]:
        """Options that mean what is open here, also when an alias moves or a directory changes."""
        if self._handle is None:
            return self._options
        pinned = [source | {"name": found["version"] or source["name"], "digest": found["digest"]}
                  for source, found in zip(self._options["datasets"], self.info()["datasets"])]
        return self._options | {"datasets": pinned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._options = state["options"]
        self.transform = state["transform"]
        self.epoch = state["epoch"]
        self._forget()

    def __del__(self) -> None:
        # A forked copy has nothing to end: threads and connections are its parent's.
        if getattr(self, "_handle", None) is not None and self._opener == os.getpid():
            _library.library().mr_dataset_close(self._handle)

    def __repr__(self) -> str:
        names = ", ".join(source["name"] for source in self._options["datasets"])
        return f"Dataset({names}, order={self._options['order']}, seed={self._options['seed']})"

    @property
    def handle(self) -> _library.Handle:
        """The native dataset, which is opened if it is not yet."""
        # One that a thread of the parent held at a fork is held for ever in the child.
        if self._opening[0] != os.getpid():
            self._opening = (os.getpid(), threading.Lock())
        with self._opening[1]:
            if self._handle is None:
                self._handle, self._opener = self._open(), os.getpid()
            return self._handle

    def _open(self) -> _library.Handle:
        options = dict(self._options)
        program = _library.program()
        if program:
            options["program"] = program
        library = _library.library()
        return _library.interruptible(library.mr_dataset_open_cancellable,
                                      _library.options_text(options),
                                      release=library.mr_dataset_close)

    def info(self) -> dict[str, Any]:
        """What is known of it: versions as they were resolved, digests, readers, samples, bytes,
        classes, and which engine reads."""
        text = _library.text(_library.library().mr_dataset_info, self.handle)
        return dict(json.loads(text))

    @property
    def classes(self) -> list[str]:
        """The names of labels by their number; empty where the reader has none."""
        return list(self.info()["datasets"][0].get("classes") or [])

    def set_epoch(self, epoch: int) -> None:
        """From now on plain positions are those of this epoch."""
        self.epoch = _library.checked_epoch(epoch)

    def read(self, positions: Iterable[int], epoch: int | None = None) -> Batch:
        """The samples at some positions of an epoch, as one batch. With on_error="skip" it may have
        fewer samples than were asked for. One without samples still has its columns."""
        from .batch import batch_of

        wanted = array.array("q", positions)
        # Checked here, because a negative number would become a huge one.
        if wanted and min(wanted) < 0:
            raise IndexError(f"position {min(wanted)} of {len(self)}")
        library = _library.library()
        try:
            return batch_of(_library.interruptible(
                library.mr_dataset_read_cancellable, self.handle,
                self.epoch if epoch is None else epoch,
                (ctypes.c_int64 * len(wanted)).from_buffer(wanted), len(wanted), 0.0,
                release=library.mr_batch_release, owner=self))
        except InvalidArgumentError as error:
            # Epochs of a mix may have other sizes than the first, which the library knows.
            if wanted and max(wanted) >= len(self):
                raise IndexError(str(error)) from None
            raise

    def __len__(self) -> int:
        """The samples of an epoch."""
        return int(_library.library().mr_dataset_samples(self.handle))

    def __getitem__(self, index: Index) -> Any:
        """The sample at a position, or at an (epoch, position), through `transform`."""
        return self._one(index)

    def _place(self, index: Index) -> tuple[Dataset, int, int]:
        """Who reads it, and the epoch and position that it names."""
        if not isinstance(index, tuple):
            return self, self.epoch, index
        return self._as_of(index[2]) if len(index) > 2 else self, index[0], index[1]

    def _as_of(self, state: str) -> Dataset:
        """This dataset, with the weights of a state."""
        if self._changed is None or self._changed._options["state"] != state:
            changed = Dataset.__new__(Dataset)
            changed.__setstate__(self.__getstate__() | {"options": self._options |
                                                                   {"state": state}})
            self._changed = changed
        return self._changed

    def _one(self, index: Index) -> Any:
        reader, epoch, position = self._place(index)
        if position < 0:
            position += len(self)
        batch = reader.read([position], epoch)
        if batch.samples == 0:
            raise InvalidArgumentError(f"the sample at position {position} cannot be had, and "
                                       "on_error='skip' leaves nothing to give instead")
        sample = batch.sample(0)
        return self.transform(sample) if self.transform else sample

    def __getitems__(self, indexes: Sequence[Index]) -> Sequence[Any]:
        """Several samples with one read: what the fetchers of torch ask for."""
        from .batch import Samples

        places = [self._place(index) for index in indexes]
        if len({(reader, epoch) for reader, epoch, _ in places}) > 1:
            return [self._one(index) for index in indexes]
        reader, epoch = places[0][:2] if places else (self, self.epoch)
        samples = Samples(reader.read([position for _, _, position in places], epoch))
        return [self.transform(sample) for sample in samples] if self.transform else samples

    def state_dict(self) -> dict[str, Any]:
        """For torchdata's StatefulDataLoader, which asks in each worker. A Dataset has no place in
        an epoch, which is the sampler's; it says how many workers there are."""
        return {"workers": _workers()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Refuses a state of a StatefulDataLoader with another number of workers, which that one
        cannot resume."""
        saved, here = state.get("workers"), _workers()
        if saved != here:
            raise InvalidArgumentError(
                f"this state of a StatefulDataLoader is of {saved} workers, and here are {here}: "
                "use as many, or resume by BatchSampler.load_state_dict(), which takes any number")

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, len(self), _AT_A_TIME):
            yield from self.__getitems__(range(first, min(first + _AT_A_TIME, len(self))))


def _sources(data: Any, weights: Sequence[float] | None,
             defaults: dict[str, Any]) -> list[dict[str, Any]]:
    """The datasets of the options: what each one says, and what holds for all."""
    given = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    sources = [item if isinstance(item, Source) else Source(item) for item in given]
    if not sources:
        raise InvalidArgumentError("no dataset is named")
    if weights is not None:
        if len(weights) != len(sources):
            raise InvalidArgumentError(f"{len(weights)} weights for {len(sources)} datasets")
        sources = [dataclasses.replace(source, weight=float(weight))
                   for source, weight in zip(sources, weights)]
    common = {name: value for name, value in defaults.items() if value is not None}
    return [common | source.options() for source in sources]


def _workers() -> int:
    """How many workers the DataLoader has whose worker this process is; 0 where it is none."""
    data = sys.modules.get("torch.utils.data")  # A worker has it.
    info = data.get_worker_info() if data is not None else None
    return info.num_workers if info is not None else 0


def state_text(state: Mapping[str, Any]) -> str:
    """What state_dict() of a loader or a sampler holds."""
    text = state.get("millrace") if isinstance(state, Mapping) else None
    if not isinstance(text, str) or not text:
        raise InvalidArgumentError("this is no state of Millrace: it has no text 'millrace'")
    return text
