"""Samplers: what they deal, alike to loaders; their states and digests."""

from __future__ import annotations

import itertools
import pathlib
import pickle
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import SAMPLES


def test_a_sampler_changes_weights_and_workers_follow(pets: str, tree: pathlib.Path) -> None:
    def dataset() -> millrace.Dataset:
        return millrace.Dataset([pets, tree], weights=[1, 1], epoch_samples=8000, seed=3,
                                engine="process")

    def ids(of: millrace.Dataset, steps: Iterable[Any]) -> list[tuple[int, int]]:
        samples = [sample for step in steps for sample in of.__getitems__(step)]
        return [(sample.source, sample.sample_id) for sample in samples]

    loader, sampler = millrace.Loader(dataset(), 500), millrace.BatchSampler(dataset(), 500)
    worker = pickle.loads(pickle.dumps(dataset()))  # It knows of no change.
    steps = iter(sampler)
    expected, seen = [], []
    for step in range(16):
        if step == 4:
            loader.set_weights([1, 9])
            sampler.set_weights([1, 9])
            state = sampler.state_dict(4)
        batch = loader.next_batch()
        assert batch is not None
        expected += list(zip(batch.sources.tolist(), batch.sample_ids.tolist()))
        seen += ids(worker, [next(steps)])
    assert seen == expected
    assert np.mean([source for source, _ in seen[5000:]]) == pytest.approx(0.9, abs=0.03)
    resumed = millrace.BatchSampler(dataset(), 250, state=state)
    assert ids(worker, resumed) == expected[2000:]


def test_samplers_and_loaders_deal_alike(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    for rank in range(3):
        sampler = millrace.BatchSampler(dataset, 40, rank=rank, world_size=3)
        loader = millrace.Loader(dataset, 40, rank=rank, world_size=3)
        assert len(sampler) == len(loader)
        for _ in range(2):
            epochs = list(zip(sampler, loader, strict=True))
            assert [indexes for indexes, _ in epochs] == [
                [(batch.epoch, int(p)) for p in batch.positions] for _, batch in epochs]
        assert sampler.digest() == loader.digest()


def test_a_sampler_is_begun_again_or_goes_on_from_a_state(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    sampler = millrace.BatchSampler(dataset, 50)
    whole = list(sampler)
    second = list(sampler)
    assert len(whole) == len(second) == 10 and second[0][0][0] == 1
    sampler = millrace.BatchSampler(dataset, 50)
    assert list(itertools.islice(sampler, 7)) == whole[:7]
    ahead, behind = sampler.state_dict(), sampler.state_dict(3)
    assert list(sampler) == whole
    sampler.load_state_dict(behind)
    assert list(sampler) == whole[3:]
    loader = millrace.Loader(dataset, 50, state=ahead)
    assert [int(p) for batch in loader for p in batch.positions] == [
        place[1] for step in whole[7:] for place in step]
    assert list(millrace.BatchSampler(dataset, 50, state=behind)) == whole[3:]


def test_counted_states_are_behind_what_was_taken(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    sampler = millrace.BatchSampler(dataset, 50)
    ahead = list(sampler)  # As a DataLoader does, which asks for more than it has given out.
    for taken, _ in enumerate(sampler.counted(ahead), start=1):
        if taken == 4:
            break
    assert list(millrace.BatchSampler(dataset, 50, state=sampler.state_dict())) == ahead[4:]


def test_digests_go_on_from_states_of_samplers(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    whole = millrace.BatchSampler(dataset, 50)
    ahead = list(whole)
    sampler = millrace.BatchSampler(dataset, 50)
    list(sampler)  # As a DataLoader does, which asks for more than it has given out.
    for taken, _ in enumerate(sampler.counted(ahead), start=1):
        if taken == 3:
            break
    state = sampler.state_dict()
    resumed, loader = millrace.BatchSampler(dataset, 20), millrace.Loader(dataset, 20, state=state)
    resumed.load_state_dict(state)
    assert resumed.digest() == loader.digest() and loader.digest().endswith(":150")
    list(resumed), list(loader)
    assert resumed.digest() == loader.digest() == whole.digest()
    # One that is begun again has not delivered what it gave out before.
    begun = millrace.BatchSampler(dataset, 50)
    list(itertools.islice(begun, 7))
    list(begun)
    assert begun.digest() == whole.digest()


def test_digests_of_ranks_keep_the_epochs_before_one_that_is_begun_again(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    whole, left = (millrace.BatchSampler(dataset, 50, rank=1, world_size=2) for _ in range(2))
    for sampler in (whole, left):
        list(sampler)
    list(itertools.islice(left, 3))
    assert list(left) == list(whole)
    assert left.digest() == whole.digest() and whole.digest().endswith(f":{SAMPLES}")


def test_batches_larger_than_memory(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    assert [len(step) for step in millrace.BatchSampler(dataset, 10**9)] == [SAMPLES]


def test_counting_begins_again_with_an_epoch_that_was_left(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    sampler = millrace.BatchSampler(dataset, 50)
    whole = list(millrace.BatchSampler(dataset, 50))
    for taken in (3, 5):
        assert list(itertools.islice(sampler.counted(sampler), taken)) == whole[:taken]
        state = sampler.state_dict()
        assert list(millrace.BatchSampler(dataset, 50, state=state)) == whole[taken:]
        copy = pickle.loads(pickle.dumps(sampler))
        assert copy.state_dict() == state and list(copy) == whole[taken:]
    # Who does not count any more is behind all that was asked for.
    assert list(sampler) == whole
    assert sampler.state_dict() == sampler.state_dict(10)


def test_weights_of_a_mix_by_repeats(pets: str, tree: pathlib.Path) -> None:
    dataset = millrace.Dataset([millrace.Source(pets, repeat=0.5),
                                millrace.Source(tree, repeat=0.5)], seed=3, engine="process")
    sampler = millrace.BatchSampler(dataset, 100)
    list(sampler)
    sampler.set_weights([1, 1])
    for _ in range(2):
        for step in sampler:
            assert len(dataset.__getitems__(step)) == len(step)
    with pytest.raises(IndexError):
        dataset.read([10**6])
    with pytest.raises(millrace.MillraceError, match="later than epoch 0.*from a state of it"):
        sampler.set_epoch(0)
