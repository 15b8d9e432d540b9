"""PyTorch's loaders over ours. Skipped where torch is not installed: `tools/python_tests torch` has
that of the distribution."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import pathlib
import signal
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import CLASSES, SAMPLES, STARTS, content, scale
from millrace.torch_batch import to_torch

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.utils.data import DataLoader  # noqa: E402

# The default of torch is to fork.
WORKERS = pytest.mark.parametrize(("engine", "method"), STARTS)
# Workers that are spawned get the same as those of a fork server, but each loads torch for seconds:
# tests that start many do without.
MANY_WORKERS = pytest.mark.parametrize(("engine", "method"), scale(
    [start for start in STARTS if start[1] != "spawn"], STARTS))
multiprocessing.get_context("forkserver").set_forkserver_preload(["torch"])


def batches(loader: Any) -> list[list[str]]:
    return [list(batch["__key__"]) for batch in loader]


def length(sample: millrace.Sample) -> tuple[str, int]:
    return sample["__key__"], len(sample["data"])


def test_arrays_that_this_torch_has_no_type_for_stay_arrays() -> None:
    columns: Any = {"depth": np.array([1, 65535], np.uint16), "age": np.array([1, 2])}
    tensors = to_torch(columns)
    assert torch.is_tensor(tensors["age"])
    assert torch.is_tensor(tensors["depth"]) == hasattr(torch, "uint16")
    assert tensors["depth"].tolist() == [1, 65535]


def test_tensors_of_a_loader(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    batch = next(iter(millrace.Loader(dataset, 100, torch=True)))
    assert batch["label"].dtype == torch.int64 and batch["label"].shape == (100,)
    batch["label"] += 1  # It is the caller's own.
    assert [CLASSES[label - 1] for label in batch["label"]] == [key[:3] for key in
                                                               batch["__key__"]]
    assert [bytes(item) for item in batch["data"]] == [content(key) for key in batch["__key__"]]


@WORKERS
@pytest.mark.parametrize("collate", [None, millrace.collate])
def test_a_data_loader_with_workers(pets: str, engine: str, method: str, collate: Any) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    loader: Any = DataLoader(dataset, batch_size=64, num_workers=2, collate_fn=collate,
                             multiprocessing_context=method)
    seen = []
    for batch in loader:
        keys = list(batch["__key__"])
        assert [bytes(item) for item in batch["data"]] == [content(key) for key in keys]
        seen += keys
    assert seen == list(dataset.read(range(SAMPLES))["__key__"])


@WORKERS
def test_a_transform_runs_in_the_workers(pets: str, engine: str, method: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine, transform=length)
    loader: Any = DataLoader(dataset, batch_size=64, num_workers=2, multiprocessing_context=method)
    pairs = [pair for keys, lengths in loader for pair in zip(keys, lengths.tolist())]
    assert len(pairs) == SAMPLES and all(size == len(content(key)) for key, size in pairs)


@MANY_WORKERS
def test_a_batch_sampler_resumes_with_other_workers(pets: str, engine: str, method: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)

    def loader(sampler: millrace.BatchSampler, workers: int) -> Any:
        return DataLoader(dataset, batch_sampler=sampler, num_workers=workers,
                          collate_fn=millrace.collate,
                          multiprocessing_context=method if workers else None)

    sampler = millrace.BatchSampler(dataset, 20)
    whole = [batches(loader(sampler, 2)) for _ in range(2)]
    assert sorted(sum(whole[0], [])) == sorted(sum(whole[1], [])) and whole[0] != whole[1]
    for taken, workers in ((1, 0), (7, 3), (24, 1)):
        sampler = millrace.BatchSampler(dataset, 20)
        first = list(itertools.islice(sampler.counted(loader(sampler, 2)), taken))
        state = sampler.state_dict()
        resumed = millrace.BatchSampler(dataset, 10, state=state)
        rest = batches(loader(resumed, workers))
        assert batches(first) == whole[0][:taken]
        assert sum(rest, []) == sum(whole[0][taken:], [])


def test_an_empty_batch_of_a_data_loader(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    sampler = millrace.BatchSampler(dataset, 1, rank=SAMPLES - 2, world_size=SAMPLES - 1)
    loader: Any = DataLoader(dataset, batch_sampler=sampler, collate_fn=millrace.collate)
    first, last = loader
    assert len(first["label"]) == 1
    assert last["label"].dtype == torch.int64 and last["label"].shape == (0,)


def test_samplers_of_all_ranks_cover_an_epoch(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    samplers = [millrace.BatchSampler(dataset, 30, rank=rank, world_size=3) for rank in range(3)]
    loaders: list[Any] = [DataLoader(dataset, batch_sampler=sampler) for sampler in samplers]
    assert len({len(loader) for loader in loaders}) == 1
    assert len(set(sum((sum(batches(loader), []) for loader in loaders), []))) == SAMPLES


@MANY_WORKERS
def test_a_stateful_data_loader_resumes(pets: str, engine: str, method: str) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader",
                                   reason="torchdata is not installed").StatefulDataLoader
    dataset = millrace.Dataset(pets, seed=3, engine=engine)

    def loader(workers: int) -> Any:
        return stateful(dataset, batch_sampler=millrace.BatchSampler(dataset, 20),
                        num_workers=workers, collate_fn=millrace.collate,
                        multiprocessing_context=method if workers else None)

    whole = batches(loader(2))
    for workers in (0, 2):
        first = loader(workers)
        taken = batches(itertools.islice(first, 9))
        resumed = loader(workers)
        resumed.load_state_dict(first.state_dict())
        assert taken + batches(resumed) == whole
    other = loader(3)
    other.load_state_dict(first.state_dict())
    with pytest.raises(millrace.InvalidArgumentError, match="of 2 workers, and here are 3"):
        iter(other)


@MANY_WORKERS
def test_a_killed_worker_is_an_error_and_the_next_epoch_goes_on(pets: str, engine: str,
                                                                method: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    loader: Any = DataLoader(dataset, batch_size=5, num_workers=2, collate_fn=millrace.collate,
                             multiprocessing_context=method)
    iterator = iter(loader)
    next(iterator)
    # Torch's handler raises wherever this process is just then, and again for every child that ends
    # later. Without it the loader notices by itself, perhaps by a connection that is cut.
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        os.kill(iterator._workers[0].pid, signal.SIGKILL)
        with pytest.raises((RuntimeError, OSError, EOFError)):
            list(iterator)
        for worker in iterator._workers:  # Else the handler would still miss the first one.
            worker.kill()
        iterator._shutdown_workers()
        assert len(sum(batches(loader), [])) == SAMPLES
    finally:
        signal.signal(signal.SIGCHLD, handler)


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_samples_that_workers_lost_are_in_the_state(home: pathlib.Path, method: str) -> None:
    data = home / f"lost_{method}"
    data.mkdir()
    for number in range(60):
        (data / f"{number:02}").write_bytes(b"x")
    dataset = millrace.Dataset(data, seed=1, engine="daemon", on_error="skip")
    assert len(dataset) == 60
    (data / "17").unlink()
    sampler = millrace.BatchSampler(dataset, 10)
    loader: Any = DataLoader(dataset, batch_sampler=sampler, num_workers=2,
                             collate_fn=millrace.collate, multiprocessing_context=method)
    for epoch in range(2):
        count = epoch
        for batch in sampler.counted(loader):
            count += len(batch["__key__"]) < 10
            lost = json.loads(sampler.state_dict()["millrace"].split(maxsplit=3)[3]).get("lost")
            assert (lost["count"] if lost else 0) == count
    assert count == 2 and len(lost["samples"]) == 1
