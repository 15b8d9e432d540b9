"""The daemon as the engine of several processes, and what is left when one of them is killed."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import sys
import time

import pytest

import millrace
from conftest import SAMPLES, Program, content
from dataset_test import interrupted, keys
from processes_test import run_rank, started


def test_both_engines_have_the_same_order(pets: str) -> None:
    first, second = (millrace.Dataset(pets, seed=5, engine=engine) for engine in
                     ("process", "daemon"))
    assert keys(first) == keys(second)
    one, other = first.read([7, 3]), second.read([7, 3])
    assert one.seeds.tolist() == other.seeds.tolist()
    assert one.sample_ids.tolist() == other.sample_ids.tolist()


def test_a_killed_rank_costs_the_others_nothing(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="daemon")
    before = set(os.listdir("/dev/shm"))
    with started("spawn", run_rank, dataset, 0, 2) as (victim, ahead), \
         started("spawn", run_rank, dataset, 1, 2) as (_, survivor):
        ahead.recv()
        seen = survivor.recv()
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        survivor.send(None)
        while isinstance(message := survivor.recv(), list):
            seen += message
            survivor.send(None)
    assert len(seen) == len(set(seen)) == SAMPLES // 2
    # Who takes the place of the killed one goes on from any state of the job.
    with started("spawn", run_rank, dataset, 0, 2) as (_, again):
        assert len(again.recv()) == 16
    assert set(os.listdir("/dev/shm")) == before


def test_a_rank_that_hangs_does_not_hold_up_another(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="daemon")
    with started("spawn", run_rank, dataset, 0, 2) as (hung, ahead), \
         started("spawn", run_rank, dataset, 1, 2) as (_, other):
        seen = ahead.recv()
        os.kill(hung.pid, signal.SIGSTOP)  # Its connections stay open, with batches in them.
        ahead.send(None)
        while isinstance(message := other.recv(), list):
            seen += message
            other.send(None)
        assert not ahead.poll()
        os.kill(hung.pid, signal.SIGCONT)
        while isinstance(message := ahead.recv(), list):
            seen += message
            ahead.send(None)
    assert sorted(seen) == list(range(SAMPLES))


def ask_daemon(program: Program, path: str) -> str:
    """What the daemon of the tests answers over its control socket."""
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(json.loads(program("status", "--json"))["socket"])
        connected.sendall(f"GET {path} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: connected.recv(65536), b"")).decode()


TRAINING = """
import os, sys
import millrace
dataset = millrace.Dataset(sys.argv[1], seed=3, engine="daemon")
len(dataset)
os.unlink(sys.argv[1] + "/b")
with millrace.Loader(dataset, 2, on_error="skip") as loader:
    for _ in range(2):
        assert sorted(sum((list(batch["__key__"]) for batch in loader), [])) == ["a", "c"]
"""


def test_samples_that_failed_are_in_the_record_of_the_run(home: pathlib.Path,
                                                          program: Program) -> None:
    data = home / "broken"
    data.mkdir()
    for name in "abc":
        (data / name).write_text(name)
    package = str(pathlib.Path(millrace.__file__).parents[1])
    program("run", "--name", "training", "--", "env", f"PYTHONPATH={package}", sys.executable,
            "-c", TRAINING, str(data))
    run = json.loads(program("run", "ls", "--json").splitlines()[0])["run"]
    failures = json.loads(program("run", "show", run, "--json"))["failures"]
    assert [(failed["dataset"], failed["key"], failed["action"], failed["times"])
            for failed in failures] == [(str(data), "b", "skip", 2)]
    assert "'b', 2 times (skip): " in program("run", "show", run)
    metrics = ask_daemon(program, "/metrics")
    assert 'millrace_loader_failed_samples_total{action="skip"} 2' in metrics
    for name in ("batches_total", "samples_total", "bytes_total",
                 'stage_seconds_total{stage="store"}', 'stage_seconds_total{stage="waiting"}',
                 "connections"):
        assert f"millrace_loader_{name} " in metrics


def test_each_dataset_of_a_mix_pays_for_itself(home: pathlib.Path, program: Program) -> None:
    names = []
    for number in range(2):
        data = home / f"part{number}"
        data.mkdir()
        for name in range(50):
            (data / f"{name:02}").write_bytes(bytes([number]) * 10_000)
        program("publish", str(data), f"part{number}@v1")
        names.append(f"part{number}@v1")
    with millrace.Loader(millrace.Dataset(names, seed=3, engine="daemon"), 10) as loader:
        assert sum(batch.samples for batch in loader) == 100
    rows = {row["version"]: row["fetched_bytes"] for row in
            map(json.loads, program("usage", "--by", "version", "--json").splitlines())}
    assert all(rows[name] >= 500_000 for name in names)


def test_ranks_at_once_fetch_every_byte_once(home: pathlib.Path, program: Program) -> None:
    data, world, size = home / "shared", 4, 400 * 20_000
    data.mkdir()
    for number in range(400):
        (data / f"{number:03}").write_bytes(os.urandom(20_000))
    program("publish", str(data), "shared@v1")
    dataset = millrace.Dataset("shared@v1", seed=3, engine="daemon")
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(started("spawn", run_rank, dataset, rank, world))[1]
                 for rank in range(world)]
        seen: list[int] = []
        running = set(pipes)
        while running:  # In step, as ranks that train together are.
            for pipe in list(running):
                if isinstance(message := pipe.recv(), list):
                    seen += message
                    pipe.send(None)
                else:
                    running.remove(pipe)
    assert sorted(seen) == list(range(400))
    rows = {row["version"]: row["fetched_bytes"] for row in
            map(json.loads, program("usage", "--by", "version", "--json").splitlines())}
    assert size <= rows["shared@v1"] <= size * 1.08  # With the headers of the packs.


def daemon_pid(program: Program) -> int:
    return int(json.loads(program("status", "--json"))["pid"])


def test_a_killed_daemon_is_replaced(pets: str, program: Program) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="daemon")
    expected = [batch.positions.tolist() for batch in millrace.Loader(dataset, 20)]
    for stop in range(1, 6, 2):
        loader = millrace.Loader(dataset, 20)
        seen = []
        for batch in loader:
            seen.append(batch.positions.tolist())
            if len(seen) == stop:
                os.kill(daemon_pid(program), signal.SIGKILL)
        assert seen == expected
        assert [bytes(item) for item in batch["data"]] == [content(k) for k in batch["__key__"]]
        assert loader.stats()["reconnects"] >= 1
    assert dataset[0]["data"] == content(dataset[0]["__key__"])


def stop(process: int) -> None:
    """Returns when all its threads have stopped: on a busy machine some run on for a while."""
    os.kill(process, signal.SIGSTOP)
    end = time.monotonic() + 30
    while any(task.read_text().rsplit(")", 1)[1].split()[0] != "T"
              for task in pathlib.Path(f"/proc/{process}/task").glob("*/stat")):
        assert time.monotonic() < end, "it does not stop"
        time.sleep(0.01)


def test_a_batch_that_does_not_come_is_told(pets: str, program: Program,
                                            capfd: pytest.CaptureFixture[str]) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="daemon")
    len(dataset)
    stopped = daemon_pid(program)
    stop(stopped)
    try:
        with millrace.Loader(dataset, 20, watchdog=0.5) as loader:
            with pytest.raises(TimeoutError):
                loader.next_batch(timeout=1.5)  # Several waits of the library, each below 0.5 s.
            assert "batch 0 of epoch 0" in loader.stats()["stuck"]
            assert "a loader waits long for a batch" in capfd.readouterr().err
            os.kill(stopped, signal.SIGCONT)
            assert loader.next_batch() is not None
            assert loader.stats()["stuck"] is None
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_an_interrupt_ends_a_read(pets: str, program: Program) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="daemon")
    first = dataset[0]
    stopped = daemon_pid(program)
    stop(stopped)
    try:
        assert interrupted(lambda: dataset.read([0])) < 5
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert dataset[0] == first


def test_after_the_first_batch_whole_pieces_are_fetched(home: pathlib.Path,
                                                        program: Program) -> None:
    data, batch, pieces = home / "noise", 16, 64
    data.mkdir()
    for number in range(pieces * 8):
        (data / f"{number:04}").write_bytes(os.urandom(128 << 10))
    program("publish", str(data), "noise@v1")

    def requests() -> int:
        return sum(int(line.split()[-1]) for line in ask_daemon(program, "/metrics").splitlines()
                   if line.startswith("millrace_store_operations_total")
                   and 'op="get_range"' in line)

    program("serve", "--background")
    dataset = millrace.Dataset("noise@v1", seed=3, engine="daemon")
    len(dataset)
    before = requests()
    with millrace.Loader(dataset, batch) as loader:
        assert sum(len(each["__key__"]) for each in loader) == pieces * 8
    # The first batch alone takes its samples out of their pieces: what is around each of them comes
    # in two requests then, and the packs' ends are no whole pieces.
    assert 0 < requests() - before <= pieces + 2 * batch + 8
