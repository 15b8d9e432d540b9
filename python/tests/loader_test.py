"""Loaders: exactly once, in any topology, across resumes; and their digests."""

from __future__ import annotations

import itertools
import os
import pathlib
import pickle
import random
import signal
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import SAMPLES, Program, scale

TOPOLOGIES = [(1, 1), (1, 64), (2, 32), (3, 7), (4, 100), (5, 33), (8, 16), (1, SAMPLES),
              (2, 1000)]


def loaders(dataset: millrace.Dataset, world: int, batch: int,
            **options: Any) -> list[millrace.Loader]:
    return [millrace.Loader(dataset, batch, rank=rank, world_size=world, **options)
            for rank in range(world)]


def steps_of(ranks: list[millrace.Loader]) -> list[list[millrace.Batch]]:
    """An epoch, step by step, with the batches of all ranks."""
    return [list(step) for step in zip(*ranks, strict=True)]


def positions(steps: list[list[millrace.Batch]]) -> list[int]:
    return sorted(int(position) for step in steps for batch in step
                  for position in batch.positions)


def test_a_batch_is_a_dict_of_columns(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    with millrace.Loader(dataset, 128) as loader:
        batches = list(loader)
    assert [batch.samples for batch in batches] == [128, 128, 122, 122]
    assert sorted(batches[0]) == ["__key__", "data", "label"]
    expected = dataset.read(batches[1].positions.tolist())
    for name in ("__key__", "data", "label"):
        assert list(batches[1][name]) == list(expected[name])
    assert batches[1].seeds.tolist() == expected.seeds.tolist()


@pytest.mark.parametrize(("world", "batch"), TOPOLOGIES)
def test_every_sample_once_with_equal_steps(pets: str, world: int, batch: int) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    ranks = loaders(dataset, world, batch)
    steps = steps_of(ranks)
    assert positions(steps) == list(range(SAMPLES))
    assert len(steps) == -(-SAMPLES // (world * batch))
    whole = millrace.Loader(dataset, 64)
    list(whole)
    assert millrace.add_digests(*(rank.digest() for rank in ranks)) == whole.digest()


def test_epochs_follow_each_other(pets: str, engine: str) -> None:
    loader = millrace.Loader(millrace.Dataset(pets, seed=3, engine=engine), 100)
    first, second = ([key for batch in loader for key in batch["__key__"]] for _ in range(2))
    assert sorted(first) == sorted(second) and first != second
    loader.set_epoch(0)
    assert [key for batch in loader for key in batch["__key__"]] == first


def test_who_counts_batches_gets_the_next_epoch_too(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    loader, sampler = millrace.Loader(dataset, 100), millrace.BatchSampler(dataset, 100)
    for epoch in range(3):
        counted = list(itertools.islice(loader, len(loader)))
        assert {batch.epoch for batch in counted} == {epoch} and len(counted) == 5
        steps = list(itertools.islice(sampler, len(sampler)))
        assert {index[0] for step in steps for index in step} == {epoch} and len(steps) == 5


def test_resume_at_any_point_with_another_topology(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    chance = random.Random(7)
    whole = millrace.Loader(dataset, 64)
    order = {int(p): key for batch in whole for p, key in zip(batch.positions, batch["__key__"])}
    for _ in range(scale(6, 100)):
        state: dict[str, Any] | None = None
        seen: dict[int, str] = {}
        digests = []
        while len(seen) < SAMPLES:
            world, batch = chance.choice([1, 2, 3, 4]), chance.choice([1, 16, 50])
            ranks = loaders(dataset, world, batch, state=state)
            stop = chance.randrange(1, len(ranks[0]) + 1)
            for step in itertools.islice(zip(*ranks), stop):
                for part in step:
                    assert not seen.keys() & {int(p) for p in part.positions}
                    seen |= {int(p): key for p, key in zip(part.positions, part["__key__"])}
            states = [rank.state_dict() for rank in ranks]
            assert len({strip_digest(state["millrace"]) for state in states}) == 1
            state = states[0]
            digests += [ranks[0].digest()]
        assert seen == order


def strip_digest(state: str) -> str:
    """All but what a rank delivered and the checksum: the same on every rank."""
    import json

    fields = json.loads(state.splitlines()[1].split(" ", 1)[1])
    return json.dumps({name: value for name, value in fields.items() if name != "delivered"})


def test_a_state_of_another_job_is_refused_by_its_field(pets: str, tree: pathlib.Path) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    loader = millrace.Loader(dataset, 10)
    loader.next_batch()
    state = loader.state_dict()
    assert len(state["millrace"]) < 1000
    other = millrace.Loader(millrace.Dataset(pets, seed=4, engine="process"), 10)
    with pytest.raises(millrace.InvalidArgumentError, match="seed"):
        other.load_state_dict(state)
    cats = millrace.Loader(millrace.Dataset(pets, directory="cat", engine="process"), 10)
    dogs = millrace.Loader(millrace.Dataset(pets, directory="dog", engine="process"), 10)
    assert len(cats) == len(dogs)
    with pytest.raises(millrace.InvalidArgumentError, match="directory is 'cat', but now.*'dog'"):
        dogs.load_state_dict(cats.state_dict())
    with pytest.raises(millrace.InvalidArgumentError, match="no state of Millrace"):
        other.load_state_dict({"epoch": 3})
    damaged = state["millrace"].replace('"position":10', '"position":11')
    with pytest.raises(millrace.CorruptionError):
        loader.load_state_dict({"millrace": damaged})


def test_the_rest_may_be_dropped_or_padded(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    dropped = positions(steps_of(loaders(dataset, 3, 32, drop_last=True)))
    assert len(dropped) == len(set(dropped)) == SAMPLES // 96 * 96
    padded = positions(steps_of(loaders(dataset, 3, 32, pad=True)))
    assert len(padded) == -(-SAMPLES // 96) * 96 and set(padded) == set(range(SAMPLES))
    for rank in range(3):
        stats = millrace.Loader(dataset, 32, rank=rank, world_size=3, drop_last=True).stats()
        assert (stats["dropped"], stats["padded"]) == (SAMPLES - len(dropped), 0)
        stats = millrace.Loader(dataset, 32, rank=rank, world_size=3, pad=True).stats()
        assert (stats["dropped"], stats["padded"]) == (0, len(padded) - SAMPLES)
    with pytest.raises(millrace.InvalidArgumentError, match="a batch size from 1 to"):
        len(millrace.Loader(dataset, 0))
    with pytest.raises(millrace.InvalidArgumentError, match="exclude each other"):
        millrace.Loader(dataset, 8, drop_last=True, pad=True)


def test_replicas_see_the_same(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    for step in steps_of(loaders(dataset, 4, 25, replication=2)):
        assert step[0].positions.tolist() == step[1].positions.tolist()
        assert step[2].positions.tolist() == step[3].positions.tolist()
        assert not set(step[0].positions.tolist()) & set(step[2].positions.tolist())


def test_weights_change_in_the_middle(pets: str, tree: pathlib.Path) -> None:
    def dataset() -> millrace.Dataset:
        return millrace.Dataset([pets, tree], weights=[1, 1], epoch_samples=8000, seed=3,
                                engine="process")

    loader = millrace.Loader(dataset(), 500)
    first = np.concatenate([loader.next_batch().sources for _ in range(4)])  # type: ignore
    loader.set_weights([1, 9])
    state = loader.state_dict()
    rest = list(loader)
    assert np.mean(first) == pytest.approx(0.5, abs=0.02)
    assert np.mean(np.concatenate([batch.sources for batch in rest[4:]])) == pytest.approx(
        0.9, abs=0.02)
    resumed = list(millrace.Loader(dataset(), 250, state=state))
    assert (np.concatenate([batch.sample_ids for batch in resumed]).tolist()
            == np.concatenate([batch.sample_ids for batch in rest]).tolist())


def test_a_job_goes_on_with_other_weights(pets: str, tree: pathlib.Path) -> None:
    def dataset(weights: list[float]) -> millrace.Dataset:
        return millrace.Dataset([pets, tree], weights=weights, epoch_samples=8000, seed=3,
                                engine="process")

    def of_second(sources: Iterable[int]) -> float:
        return float(np.mean(list(sources)))

    loader = millrace.Loader(dataset([1, 1]), 500)
    for _ in range(4):
        loader.next_batch()
    state = loader.state_dict()
    loader = millrace.Loader(dataset([1, 9]), 250)
    loader.load_state_dict(state)
    rest, following = list(loader), list(loader)
    assert of_second(s for batch in rest[4:] for s in batch.sources) == pytest.approx(0.9, abs=0.02)
    assert of_second(s for batch in following for s in batch.sources) == pytest.approx(0.9,
                                                                                      abs=0.01)
    for sampler in (millrace.BatchSampler(dataset([1, 9]), 250, state=state),
                    millrace.BatchSampler(dataset([1, 9]), 250)):
        sampler.load_state_dict(state)
        worker = pickle.loads(pickle.dumps(dataset([1, 9])))
        for epoch in (rest, following):
            assert [sample.sample_id for step in sampler for sample in
                    worker.__getitems__(step)] == [i for batch in epoch for i in
                                                   batch.sample_ids.tolist()]


def test_a_wait_for_a_batch_can_be_short(pets: str) -> None:
    with millrace.Loader(millrace.Dataset(pets, seed=3, engine="process"), 20) as loader:
        expected = [batch.positions.tolist() for batch in loader]
    with millrace.Loader(millrace.Dataset(pets, seed=3, engine="process"), 20) as loader:
        seen, waits = [], 0
        while True:
            try:
                batch = loader.next_batch(timeout=0)
            except TimeoutError:
                waits += 1
                continue
            if batch is None:
                break
            seen.append(batch.positions.tolist())
    assert seen == expected and waits > 0


def test_fewer_samples_than_ranks_is_an_error(pets: str) -> None:
    dataset = millrace.Dataset(pets, engine="process")
    with pytest.raises(millrace.InvalidArgumentError):
        len(millrace.Loader(dataset, 1, rank=0, world_size=SAMPLES + 1))


@pytest.mark.parametrize("policy", ["raise", "skip", "substitute"])
def test_samples_that_cannot_be_had(program: Program, home: pathlib.Path, policy: str) -> None:
    broken = home / f"broken_{policy}"
    broken.mkdir()
    for number in range(60):
        (broken / f"{number:02}").write_bytes(bytes(100))
    dataset = millrace.Dataset(broken, seed=1, engine="process", settings={
        "attempts_max": "1"})
    assert len(dataset) == 60
    (broken / "17").unlink()
    loader = millrace.Loader(dataset, 20, on_error=policy)
    if policy == "raise":
        with pytest.raises(millrace.MillraceError, match="17"):
            list(loader)
        return
    batches = list(loader)
    paths = [key for batch in batches for key in batch["__key__"]]
    assert "17" not in paths and len(paths) == (59 if policy == "skip" else 60)
    stats = loader.stats()  # The next epoch is being read ahead, and has it too.
    assert [(failure["key"], failure["action"]) for failure in stats["failures"]
            if failure["epoch"] == 0] == [("17", policy)]
    assert stats["failed"] >= 1


def test_a_loader_takes_over_what_its_dataset_says(home: pathlib.Path) -> None:
    broken = home / "inherited"
    broken.mkdir()
    for number in range(10):
        (broken / str(number)).write_bytes(b"x")
    dataset = millrace.Dataset(broken, engine="process", on_error="skip")
    assert len(dataset) == 10
    (broken / "7").unlink()
    assert sum(batch.samples for batch in millrace.Loader(dataset, 5)) == 9
    with pytest.raises(millrace.MillraceError, match="'7'"):
        list(millrace.Loader(dataset, 5, on_error="raise"))


def test_what_a_loader_cannot_do_with_its_dataset(pets: str) -> None:
    with pytest.raises(millrace.InvalidArgumentError, match="give the Loader a collate="):
        millrace.Loader(millrace.Dataset(pets, transform=len), 5)
    with pytest.raises(millrace.InvalidArgumentError, match="epoch_samples .* by weights"):
        len(millrace.Dataset(pets, epoch_samples=7, engine="process"))
    assert len(millrace.Dataset(pets, weights=[1], epoch_samples=7, engine="process")) == 7
    for taker in (millrace.Loader, millrace.BatchSampler):
        with pytest.raises(millrace.InvalidArgumentError, match="takes a millrace.Dataset"):
            taker("pets@v1", 1)  # type: ignore[arg-type]


def test_stats_say_what_was_delivered(pets: str, engine: str) -> None:
    loader = millrace.Loader(millrace.Dataset(pets, seed=3, engine=engine), 100)
    list(loader)
    stats = loader.stats()
    assert (stats["batches"], stats["samples"]) == (5, SAMPLES)
    assert stats["bytes"] > 0
    assert set(stats["seconds"]) >= {"waiting", "store", "decode", "consumer"}


def test_a_bar_for_each_epoch(pets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[dict[str, Any]] = []

    class Bar:
        def __init__(self, **options: Any) -> None:
            bars.append(options)

        def update(self) -> None:
            bars[-1]["initial"] += 1

        def close(self) -> None:
            pass

    tqdm = types.ModuleType("tqdm.auto")
    tqdm.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", tqdm)
    loader = millrace.Loader(millrace.Dataset(pets, engine="process"), 100, progress=True)
    for _ in range(2):
        list(loader)
    next(iter(loader))
    list(loader)  # What was left early.
    assert [(bar["desc"], bar["total"], bar["initial"]) for bar in bars] == [
        ("epoch 0", 5, 5), ("epoch 1", 5, 5), ("epoch 2", 5, 1), ("epoch 2", 5, 5)]


def test_a_bar_shows_the_batches_of_an_epoch(pets: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    for rank, shown in ((0, True), (1, False)):
        loader = millrace.Loader(dataset, 50, rank=rank, world_size=2, progress=True)
        list(loader)
        bar = capfd.readouterr().err
        assert ("epoch 0: 100%" in bar and "5/5" in bar) == shown
    list(millrace.Loader(dataset, 50))
    assert "epoch" not in capfd.readouterr().err


def test_an_interrupt_ends_the_wait(pets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    loader = millrace.Loader(dataset, 100)
    first = loader.next_batch()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        while True:  # However often: the signal is seen between two waits.
            loader.set_epoch(0)
            list(loader)
    loader.set_epoch(0)
    again = loader.next_batch()
    assert first is not None and again is not None
    assert first.positions.tolist() == again.positions.tolist()


def test_a_loader_stays_in_its_process(pets: str) -> None:
    import pickle

    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(millrace.Loader(millrace.Dataset(pets), 8))
