"""The daemon as the engine of several processes, and what is left when one of them is killed."""

from __future__ import annotations

import json
import os
import signal

import millrace
from conftest import SAMPLES, Program, content
from dataset_test import keys
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
