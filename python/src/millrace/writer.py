"""Makes versions out of samples."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from . import _library
from .errors import InvalidArgumentError



class Scalar(Protocol):
    """A number of NumPy, or a tensor of one."""

    @property
    def shape(self) -> Any: ...

    def item(self) -> Any: ...


Value: TypeAlias = (bytes | bytearray | memoryview | str | int | float | Scalar | Mapping[str, Any]
                    | list[Any])


def _number(value: Any) -> Any:
    """A Scalar as a number of Python's own; everything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def _bytes(name: str, value: Value) -> bytes:
    """As a file would hold it: texts in UTF-8, numbers as text, the rest as JSON."""

    def refuse(item: Any) -> InvalidArgumentError:
        return InvalidArgumentError(f"field '{name}' is {type(item).__name__}: give bytes, a text, "
                                    "a number, or what JSON can hold")

    def nested(item: Any) -> Any:
        plain = _number(item)
        if not isinstance(plain, bool | int | float):
            raise refuse(item)
        return plain

    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    plain = _number(value)
    if isinstance(plain, bool):
        plain = int(plain)  # As a class or a flag is read: 0 or 1.
    if not isinstance(plain, int | float | Mapping | list):
        raise refuse(value)
    return json.dumps(plain, default=nested).encode()


def _path(text: str) -> bytes:
    """A key, or the name of a field, for the native interface, whose texts end at a NUL."""
    if "\0" in text:
        raise InvalidArgumentError(f"{text!r} has a NUL, which the name of a file cannot have")
    return text.encode()


class Writer:
    """Writes samples, and publishes them as a version when the `with` ends well.

    with millrace.Writer("pets@v3") as writer:
        writer.write("cat/0001", jpg=picture, cls=3)

    A sample is a file "key.field" for each field. Files are gathered in a directory and packed when
    they are published; an exception inside the `with` removes them. A version has one Writer at a
    time, which begins with nothing, whatever a killed one left. For several processes name the
    directory, as `staging`: all but one write with commit=False, and the one that ends last
    publishes all that is there. One thread at a time uses a Writer.
    """

    def __init__(self, version: str, *, staging: str | os.PathLike[str] | None = None,
                 notes: str | None = None, settings: Mapping[str, str] | None = None,
                 commit: bool = True) -> None:
        if not commit and staging is None:
            raise InvalidArgumentError("commit=False leaves samples for another Writer to publish: "
                                       "name the directory of both by staging=")
        options: dict[str, Any] = {"name": version}
        if staging is not None:
            options["staging"] = os.path.abspath(os.fspath(staging))
        if notes is not None:
            options["notes"] = notes
        if settings:
            options["settings"] = dict(settings)
        self._commit = commit
        self._handle: _library.Handle | None = None
        handle = _library.Handle()
        _library.call(_library.library().mr_writer_open, json.dumps(options).encode(),
                      ctypes.byref(handle))
        self._handle = handle
        self.result: dict[str, Any] | None = None  # What commit() returned.

    @property
    def _open(self) -> _library.Handle:
        if self._handle is None:
            raise InvalidArgumentError("this writer is closed")
        return self._handle

    def write(self, key: str, fields: Mapping[str, Value] | None = None, **more: Value) -> None:
        """One sample. ConflictError when somebody has written such a file already."""
        values = {name: _bytes(name, value) for name, value in {**(fields or {}), **more}.items()}
        if not values:
            raise InvalidArgumentError(f"sample '{key}' has no fields")
        native = (_library.Field * len(values))()
        for slot, (name, content) in zip(native, values.items()):
            slot.name, slot.data, slot.bytes = _path(name), content, len(content)
        _library.call(_library.library().mr_writer_write, self._open, _path(key), native,
                      len(values))

    def commit(self) -> dict[str, Any]:
        """Publishes all that is in the staging directory, and closes: "version", "digest", "files"
        and "bytes". After a failure it may be called again."""
        self.result = dict(json.loads(_library.text(_library.library().mr_writer_commit,
                                                    self._open)))
        self.close()
        return self.result

    def abort(self) -> None:
        """Removes the staging directory with all that anybody wrote, and closes."""
        _library.call(_library.library().mr_writer_abort, self._open)
        self.close()

    def close(self) -> None:
        """Leaves what was written in `staging`, for another writer to commit."""
        handle, self._handle = self._handle, None
        if handle is not None:
            _library.library().mr_writer_close(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._handle is None:
            return
        try:
            if self._commit and kind is None:
                self.commit()
            elif self._commit:
                self.abort()
        finally:
            self.close()  # Also after a failure: the next Writer of the version begins anew.
