"""What can go wrong, by what the caller can do about it."""

from __future__ import annotations


class MillraceError(Exception):
    """A failure of Millrace. Its text is one sentence for people; `name` is stable."""

    name = "internal"


class UnavailableError(MillraceError):
    """The store or the daemon does not answer, or is too busy; later it may."""

    name = "unavailable"


class ConflictError(MillraceError):
    """Somebody else was first, or an object is no longer the one that was pinned."""

    name = "conflict"


class NotFoundError(MillraceError, LookupError):
    """There is no such dataset, version, alias, directory or object."""

    name = "not_found"


class InvalidArgumentError(MillraceError, ValueError):
    """What was asked for makes no sense; the text says what to write instead."""

    name = "invalid_argument"


class PermissionDeniedError(MillraceError, PermissionError):
    """The store refuses these credentials, or there are none."""

    name = "permission_denied"


class UnsupportedError(MillraceError):
    """This release, store or machine cannot do it."""

    name = "unsupported"


class DeadlineExceededError(MillraceError, TimeoutError):
    """It took too long, with all retries."""

    name = "deadline_exceeded"


class CorruptionError(MillraceError):
    """Bytes that fail a check."""

    name = "corruption"


# By the codes of millrace.h. Those that are not here are MillraceError itself.
BY_CODE: dict[int, type[MillraceError]] = {
    1: UnavailableError,
    2: UnavailableError,
    3: ConflictError,
    4: ConflictError,
    5: NotFoundError,
    6: InvalidArgumentError,
    7: PermissionDeniedError,
    8: PermissionDeniedError,
    9: UnsupportedError,
    11: DeadlineExceededError,
    13: CorruptionError,
}
