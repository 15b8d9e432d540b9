"""Several processes: how they are started, how they die, and what that costs the others."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

import millrace
from conftest import SAMPLES, STARTS, content, scale


def read_all(dataset: millrace.Dataset, connection: Connection) -> None:
    batch = dataset.read(range(len(dataset)))
    right = all(bytes(data) == content(key) for key, data in zip(batch["__key__"], batch["data"]))
    connection.send((list(batch["__key__"]), right))


def run_rank(dataset: millrace.Dataset, rank: int, world: int, connection: Connection) -> None:
    """One rank: sends each batch's positions when asked to, and at the end its digest."""
    loader = millrace.Loader(dataset, 16, rank=rank, world_size=world)
    for batch in loader:
        connection.send([int(position) for position in batch.positions])
        connection.recv()
    connection.send(loader.digest())


@contextlib.contextmanager
def started(method: str, target: Any, *arguments: Any) -> Iterator[tuple[Any, Connection]]:
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=target, args=(*arguments, there))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join()


@pytest.mark.parametrize(("engine", "method"), STARTS)
@pytest.mark.parametrize("used", [False, True])
def test_every_way_to_start_a_process(pets: str, engine: str, method: str, used: bool) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    if used:  # The child then has a copy of what the parent had open, or opens it anew.
        assert dataset[0]
    with started(method, read_all, dataset) as (_, first), \
         started(method, read_all, dataset) as (_, second):
        keys, right = first.recv()
        assert second.recv() == (keys, right)
    assert right and len(set(keys)) == SAMPLES
    assert list(dataset.read(range(SAMPLES))["__key__"]) == keys


HELD: list[millrace.Batch] = []


def look_later(connection: Connection) -> None:
    connection.recv()
    keys, data = HELD[0]["__key__"], HELD[0]["data"]
    connection.send(all(bytes(item) == content(key) for key, item in zip(keys, data)))
    HELD.clear()
    connection.send(True)


def test_a_child_keeps_the_batch_that_it_was_forked_with(pets: str, engine: str) -> None:
    loader = millrace.Loader(millrace.Dataset(pets, seed=3, engine=engine), 50, prefetch=1)
    HELD.append(next(iter(loader)))
    with started("fork", look_later) as (_, child):
        HELD.clear()
        for _ in range(3):
            for _ in loader:
                pass
        child.send(None)
        assert child.recv(), "the parent has let go of it, and read others"
        assert child.recv(), "and the child can let go"


def test_a_fork_while_another_thread_opens_the_dataset(pets: str, engine: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    parent, real = os.getpid(), dataset._open
    opening, go_on = threading.Event(), threading.Event()

    def open_late() -> Any:
        opening.set()
        assert os.getpid() != parent or go_on.wait(60)
        return real()

    monkeypatch.setattr(dataset, "_open", open_late)
    thread = threading.Thread(target=lambda: len(dataset))
    thread.start()
    assert opening.wait(60)
    with started("fork", read_all, dataset) as (_, child):
        assert child.poll(60), "the child waits for a thread that it does not have"
        assert child.recv()[1]
    go_on.set()
    thread.join()
    assert len(dataset) == SAMPLES


def test_nothing_exists_before_first_use(pets: str) -> None:
    script = ("import os, threading, millrace; d = millrace.Dataset('pets@v1');"
              "l = millrace.Loader(d, 8); s = millrace.BatchSampler(d, 8);"
              "print(len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')));"
              "import sys; print({'torch', 'numpy', 'ctypes.util'} & {*sys.modules});"
              "print(millrace.Batch.__name__, millrace.rng.__name__)")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env=environment, check=True)
    assert done.stdout.splitlines() == ["1 4", "set()", "Batch rng"]


def test_ranks_as_processes_share_one_epoch(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    world = 3
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(started("spawn", run_rank, dataset, rank, world))[1]
                 for rank in range(world)]
        seen: list[int] = []
        digests: list[str] = []
        for pipe in pipes:
            while isinstance(message := pipe.recv(), list):
                seen += message
                pipe.send(None)
            digests.append(message)
    assert sorted(seen) == list(range(SAMPLES))
    whole = millrace.Loader(dataset, 64)
    list(whole)
    assert millrace.add_digests(*digests) == whole.digest()


def resident_bytes() -> int:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_many_epochs_leak_nothing(pets: str, engine: str) -> None:
    files = len(os.listdir("/proc/self/fd"))
    loader = millrace.Loader(millrace.Dataset(pets, seed=3, engine=engine), 50)
    for _ in range(30):  # Until arenas have their size.
        for _ in loader:
            pass
    settled = resident_bytes()
    for _ in range(scale(1000, 20000)):
        for _ in loader:
            pass
    assert resident_bytes() - settled < 8 << 20
    # A few sockets. Each of the 4 connections that read may come to have memory for all batches
    # that are under way or held: 7 of them.
    assert len(os.listdir("/proc/self/fd")) <= files + 8 + 4 * 7
