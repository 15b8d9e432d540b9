"""Batches without samples: their columns are those of the others."""

from __future__ import annotations

import pathlib

import numpy as np

import millrace
from loader_test import loaders, positions, steps_of


def check_empty(batch: millrace.Batch) -> None:
    assert batch.samples == 0
    assert batch["label"].dtype == np.int64 and batch["label"].shape == (0,)
    assert list(batch["data"]) == list(batch["__key__"]) == []


def test_empty_batches_have_their_columns(home: pathlib.Path, engine: str) -> None:
    few = home / f"few_{engine}" / "a"
    few.mkdir(parents=True)
    for number in range(5):
        (few / str(number)).write_bytes(b"x")
    dataset = millrace.Dataset(few.parent, seed=1, engine=engine)
    steps = steps_of(loaders(dataset, 4, 1))
    assert positions(steps) == list(range(5))
    empty = [batch for batch in steps[1] if batch.samples == 0]
    assert len(empty) == 3
    for batch in [*empty, dataset.read([])]:
        check_empty(batch)
    # Resumed with fewer samples left than there are ranks.
    first = millrace.Loader(dataset, 3)
    first.next_batch()
    rest = steps_of(loaders(dataset, 4, 2, state=first.state_dict()))
    assert sorted(batch.samples for batch in rest[0]) == [0, 0, 1, 1]
    for batch in rest[0]:
        assert set(batch) == {"__key__", "data", "label"}


def test_a_batch_whose_only_sample_is_skipped(home: pathlib.Path, engine: str) -> None:
    data = home / f"skipped_{engine}" / "a"
    data.mkdir(parents=True)
    for number in range(5):
        (data / str(number)).write_bytes(b"x")
    dataset = millrace.Dataset(data.parent, seed=1, engine=engine)
    assert len(dataset) == 5
    (data / "3").unlink()
    empty = [batch for batch in millrace.Loader(dataset, 1, on_error="skip")
             if batch.samples == 0]
    assert len(empty) == 1
    check_empty(empty[0])


def test_an_empty_step_of_a_sampler(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=1, engine="process")
    samples = dataset.__getitems__([])
    assert isinstance(samples, millrace.Samples) and len(samples) == 0
    check_empty(samples.batch)
    assert millrace.collate([]) == {}
