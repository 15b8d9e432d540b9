"""The native library, through ctypes: where it is found, its functions, and its failures.

Nothing is loaded before the first call of `library()`, and the library itself starts no thread and
opens no socket before a dataset is opened.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from .errors import BY_CODE, InvalidArgumentError, MillraceError

ABI_VERSION = 1

AGAIN = -2  # The batch is not there yet.
END = -1  # The epoch has ended.
OK = 0

Handle = ctypes.c_void_p


class Column(ctypes.Structure):
    """mr_column."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("data_bytes", ctypes.c_uint64),
        ("offsets", ctypes.c_void_p),
        ("item_offsets", ctypes.c_void_p),
        ("present", ctypes.c_void_p),
        ("uniform", ctypes.c_int32),
        ("dimensions", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_uint64)),
        ("shapes", ctypes.c_void_p),
    ]


class Field(ctypes.Structure):
    """mr_field."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_char_p),
        ("bytes", ctypes.c_size_t),
    ]


_TEXT_OUT = ctypes.POINTER(ctypes.c_void_p)  # Not c_char_p: the pointer is needed to free it.
_HANDLE_OUT = ctypes.POINTER(Handle)
_ERROR_OUT = ctypes.POINTER(Handle)
_U64 = ctypes.c_uint64

# Arguments of the functions that can fail, without the error, which all of them have last.
_FALLIBLE: dict[str, list[Any]] = {
    "mr_dataset_open_cancellable": [ctypes.c_char_p, Handle, _HANDLE_OUT],
    "mr_dataset_info": [Handle, _TEXT_OUT],
    "mr_dataset_read_cancellable": [Handle, _U64, ctypes.c_void_p, ctypes.c_size_t,
                                    ctypes.c_double, Handle, _HANDLE_OUT],
    "mr_loader_open": [Handle, ctypes.c_char_p, _HANDLE_OUT],
    "mr_loader_next": [Handle, ctypes.c_double, _HANDLE_OUT],
    "mr_loader_set_epoch": [Handle, _U64],
    "mr_loader_state": [Handle, _TEXT_OUT],
    "mr_loader_load_state": [Handle, ctypes.c_char_p],
    "mr_loader_set_shares": [Handle, ctypes.c_char_p],
    "mr_loader_stats": [Handle, _TEXT_OUT],
    "mr_loader_digest": [Handle, _TEXT_OUT],
    "mr_digest_add": [ctypes.c_char_p, ctypes.c_char_p, _TEXT_OUT],
    "mr_sampler_open": [Handle, ctypes.c_char_p, _HANDLE_OUT],
    "mr_sampler_next": [Handle, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)],
    "mr_sampler_set_epoch": [Handle, _U64],
    "mr_sampler_rewind": [Handle],
    "mr_sampler_state": [Handle, _U64, _TEXT_OUT],
    "mr_sampler_load_state": [Handle, ctypes.c_char_p],
    "mr_sampler_set_shares": [Handle, ctypes.c_char_p],
    "mr_sampler_digest": [Handle, _TEXT_OUT],
    "mr_writer_open": [ctypes.c_char_p, _HANDLE_OUT],
    "mr_writer_write": [Handle, ctypes.c_char_p, ctypes.POINTER(Field), ctypes.c_size_t],
    "mr_writer_commit": [Handle, _TEXT_OUT],
    "mr_writer_abort": [Handle],
}

# The others: what they return, and their arguments.
_PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "mr_abi_version": (ctypes.c_uint32, []),
    "mr_release": (ctypes.c_char_p, []),
    "mr_error_code": (ctypes.c_int, [Handle]),
    "mr_error_message": (ctypes.c_char_p, [Handle]),
    "mr_error_free": (None, [Handle]),
    "mr_text_free": (None, [ctypes.c_void_p]),
    "mr_cancellation_make": (Handle, []),
    "mr_cancellation_request": (None, [Handle]),
    "mr_cancellation_free": (None, [Handle]),
    "mr_dataset_close": (None, [Handle]),
    "mr_dataset_samples": (_U64, [Handle]),
    "mr_loader_close": (None, [Handle]),
    "mr_loader_steps": (_U64, [Handle]),
    "mr_loader_step": (_U64, [Handle]),
    "mr_loader_epoch": (_U64, [Handle]),
    "mr_sampler_close": (None, [Handle]),
    "mr_sampler_steps": (_U64, [Handle]),
    "mr_sampler_step": (_U64, [Handle]),
    "mr_sampler_epoch": (_U64, [Handle]),
    "mr_batch_release": (None, [Handle]),
    "mr_batch_samples": (ctypes.c_size_t, [Handle]),
    "mr_batch_epoch": (_U64, [Handle]),
    "mr_batch_positions": (ctypes.c_void_p, [Handle]),
    "mr_batch_sources": (ctypes.c_void_p, [Handle]),
    "mr_batch_sample_ids": (ctypes.c_void_p, [Handle]),
    "mr_batch_seeds": (ctypes.c_void_p, [Handle]),
    "mr_batch_columns": (ctypes.c_size_t, [Handle]),
    "mr_batch_column": (None, [Handle, ctypes.c_size_t, ctypes.POINTER(Column)]),
    "mr_writer_close": (None, [Handle]),
}


def _bundled(name: str) -> pathlib.Path | None:
    """A file of ours: from the wheel, else from the checkout that this package lies in."""
    here = pathlib.Path(__file__).resolve().parent
    places = [here / "_bundle" / "lib" / name, here / "_bundle" / "bin" / name]
    if len(here.parents) > 2:
        places.append(here.parents[2] / "build" / "release" / name)
    return next((place for place in places if place.exists()), None)


def program() -> str | None:
    """The millrace program that starts daemons; None leaves the choice to the library."""
    if "MILLRACE_BIN" in os.environ:
        return None  # The library looks there by itself.
    found = _bundled("millrace")
    return str(found) if found else None


@functools.cache
def library() -> ctypes.CDLL:
    """The library, loaded at the first call. `MILLRACE_LIBRARY` names another one."""
    chosen = os.environ.get("MILLRACE_LIBRARY")
    path = pathlib.Path(chosen) if chosen else _bundled("libmillrace.so")
    if path is None:
        raise ImportError("millrace: libmillrace.so is neither in this package nor built. "
                          "Install a wheel, or run `make wheel` in the checkout.")
    loaded = ctypes.CDLL(str(path))
    for name, arguments in _FALLIBLE.items():
        function = getattr(loaded, name)
        function.argtypes = [*arguments, _ERROR_OUT]
        function.restype = ctypes.c_int
    for name, (result, arguments) in _PLAIN.items():
        function = getattr(loaded, name)
        function.argtypes = arguments
        function.restype = result
    if loaded.mr_abi_version() != ABI_VERSION:
        raise ImportError(f"millrace: {path} has interface {loaded.mr_abi_version()}, "
                          f"this package needs {ABI_VERSION}: install both from one release.")
    return loaded


def failure(code: int, error: Handle) -> MillraceError:
    """The exception for a failed call; frees the error."""
    text = "it failed without saying why"
    if error:
        text = library().mr_error_message(error).decode(errors="replace")
        library().mr_error_free(error)
    return BY_CODE.get(code, MillraceError)(text)


def call(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function that can fail. Returns OK or END, raises for everything else."""
    error = Handle()
    code = function(*arguments, ctypes.byref(error))
    if code not in (OK, END):
        raise failure(code, error)
    return code


class _Helper:
    """A thread that makes calls for the main one."""

    def __init__(self) -> None:
        self.process = os.getpid()  # One that it forks does not have the thread.
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="millrace", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._tasks.get()()

    def run(self, task: Callable[[], None]) -> None:
        """Returns at once."""
        self._tasks.put(task)


# Kept for the next call, because to start a thread takes longer than many a read.
_idle_helper: _Helper | None = None

# How long a call that was called off may take to notice.
_NOTICED_S = 5.0


def interruptible(function: Callable[..., int], *arguments: Any, release: Callable[[Handle], None],
                  owner: object = None) -> Handle:
    """What a call that may wait long hands out. Python sees signals only between two steps of its
    main thread, so that thread does not make the call itself: it waits for another one, and calls
    it off when a signal (Ctrl-C) raises. `release` is for what came too late; `owner` stays for as
    long as the call runs."""
    if threading.current_thread() is not threading.main_thread():
        result = Handle()
        call(function, *arguments, None, ctypes.byref(result))
        return result
    global _idle_helper
    helper, _idle_helper = _idle_helper, None
    if helper is None or helper.process != os.getpid():
        helper = _Helper()
    cancellation = Handle(library().mr_cancellation_make())
    outcome: list[Handle | Exception] = []
    done = threading.Event()

    def task(_: object = owner) -> None:
        result = Handle()
        try:
            call(function, *arguments, cancellation, ctypes.byref(result))
            outcome.append(result)
        except Exception as error:
            outcome.append(error)
        finally:
            done.set()

    try:
        helper.run(task)
        done.wait()
    except BaseException:
        library().mr_cancellation_request(cancellation)
        if done.wait(_NOTICED_S) and isinstance(outcome[0], Handle):
            release(outcome[0])
        raise
    finally:
        if done.is_set():
            _idle_helper = helper
            library().mr_cancellation_free(cancellation)
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def options_text(options: Any) -> bytes:
    """Options as the native interface takes them; NumPy's numbers are numbers too."""

    def plain(value: Any) -> Any:
        if not hasattr(value, "item"):
            raise TypeError(f"{value!r} is neither a number nor a text")
        return value.item()

    try:
        return json.dumps(options, allow_nan=False, default=plain).encode()
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"an option is of no use: {error}") from None


def checked_epoch(epoch: int) -> int:
    """The number of an epoch, unless it is none."""
    if not 0 <= epoch < 1 << 63:
        raise InvalidArgumentError(f"there is no epoch {epoch}: they are counted from 0")
    return int(epoch)


def text(function: Callable[..., int], *arguments: Any) -> str:
    """Calls a function whose last result is a text."""
    result = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(result))
    try:
        return ctypes.string_at(result.value or 0).decode()
    finally:
        library().mr_text_free(result)
