"""Loaders that are used as they were not meant: closed, watched by others, asked for nonsense."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
import pytest

import millrace


def test_a_closed_loader_says_so(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    with millrace.Loader(dataset, 50) as loader:
        loader.next_batch()
    for use in (loader.next_batch, loader.state_dict, loader.stats, loader.digest):
        with pytest.raises(millrace.InvalidArgumentError, match="this Loader is closed"):
            use()
    loader.close()


def test_others_look_at_a_loader_that_is_opened_and_closed(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    for _ in range(20):
        loader = millrace.Loader(dataset, 50)

        def look(at: millrace.Loader = loader) -> None:
            with contextlib.suppress(millrace.InvalidArgumentError):
                while True:
                    at.stats(), at.digest()

        lookers = [threading.Thread(target=look) for _ in range(2)]
        for looker in lookers:
            looker.start()
        assert loader.next_batch() is not None
        loader.close()
        for looker in lookers:
            looker.join()


def int_like(number: int) -> Any:
    return np.int32(number)


def test_arguments_that_are_no_use(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=int_like(3), engine="process")
    loader = millrace.Loader(dataset, int_like(50))
    assert len(loader) == 10
    sampler = millrace.BatchSampler(dataset, 50)
    for epoch in (-1, 1 << 64):
        for of in (loader, sampler, dataset):
            with pytest.raises(millrace.InvalidArgumentError, match="there is no epoch"):
                of.set_epoch(epoch)
    for state in ({}, {"millrace": ""}, "text"):
        with pytest.raises(millrace.InvalidArgumentError, match="no state of Millrace"):
            loader.load_state_dict(state)  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidArgumentError, match="of no use"):
        len(millrace.Loader(dataset, 50, sample_timeout=float("inf")))
    with pytest.raises(millrace.InvalidArgumentError, match="one by one"):
        millrace.add_digests([loader.digest()])  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidArgumentError):
        millrace.add_digests("x")
    assert millrace.add_digests(loader.digest()) == loader.digest()


def test_a_job_that_knows_its_end(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    loader = millrace.Loader(dataset, 50, epochs=2)
    sampler = millrace.BatchSampler(dataset, 50, epochs=2)
    for _ in range(2):
        assert len(list(loader)) == len(list(sampler)) == 10
    for over in (loader, sampler, loader):
        with pytest.raises(millrace.InvalidArgumentError, match="has 2 epochs.* they are over"):
            list(over)
    state = loader.state_dict()
    with pytest.raises(millrace.InvalidArgumentError, match="they are over"):
        len(millrace.Loader(dataset, 50, epochs=2, state=state))
    assert len(list(millrace.Loader(dataset, 50, epochs=3, state=state))) == 10
    with pytest.raises(millrace.InvalidArgumentError, match="at least one"):
        millrace.Loader(dataset, 50, epochs=0)
