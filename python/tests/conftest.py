"""A home of its own for each run of the tests: a store, a cache, and a daemon that ends with it."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from millrace import _library

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CLASSES = ("cat", "dog", "emu")
SAMPLES = 500

Program = Callable[..., str]
ENGINES = ["process", "daemon"]
# Ways to start processes that read. Those that a process forks do not have its threads, so they
# need the daemon.
STARTS = [(engine, method) for engine in ENGINES for method in ("spawn", "forkserver", "fork")
          if (engine, method) != ("process", "fork")]


def content(path: str) -> bytes:
    """What the file of the test dataset at this path holds: another length for each."""
    number = int(pathlib.PurePath(path).stem)
    return f"{path}:".encode() * (1 + number % 37)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Everything that Millrace writes goes here."""
    directory = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("MILLRACE_")]:
        if name not in ("MILLRACE_BIN", "MILLRACE_LIBRARY", "MILLRACE_SCALE"):
            del os.environ[name]
    os.environ.update(XDG_DATA_HOME=str(directory / "data"),
                      XDG_CONFIG_HOME=str(directory / "config"),
                      MILLRACE_CACHE_SIZE="1GiB")
    os.environ.setdefault("MILLRACE_BIN", str(SOURCE / "build" / "release" / "millrace"))
    yield directory
    subprocess.run([os.environ["MILLRACE_BIN"], "stop"], capture_output=True)


@pytest.fixture(scope="session")
def program(home: pathlib.Path) -> Program:
    """Runs the millrace program; returns what it printed."""

    def run(*arguments: str) -> str:
        done = subprocess.run([os.environ["MILLRACE_BIN"], *arguments], text=True,
                              capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def tree(home: pathlib.Path) -> pathlib.Path:
    """A directory of small files in one folder per class."""
    directory = home / "pets"
    for number in range(SAMPLES):
        path = f"{CLASSES[number * len(CLASSES) // SAMPLES]}/{number:04}"
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content(path))
    return directory


@pytest.fixture(scope="session")
def pets(program: Program, tree: pathlib.Path) -> str:
    """The same as a version."""
    program("publish", str(tree), "pets@v1")
    return "pets@v1"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, home: pathlib.Path) -> str:
    return str(request.param)


T = TypeVar("T")


def scale(small: T, full: T) -> T:
    """How much of a long suite to do."""
    return full if os.environ.get("MILLRACE_SCALE") == "full" else small


@pytest.fixture(scope="session", autouse=True)
def native() -> None:
    """Fails early, and once, where the library is not built."""
    _library.library()
