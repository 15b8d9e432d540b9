"""Datasets by position: order, content, parts, mixes, what is pickled."""

from __future__ import annotations

import os
import pathlib
import pickle
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import CLASSES, SAMPLES, Program, content


def keys(dataset: millrace.Dataset, epoch: int = 0) -> list[str]:
    return list(dataset.read(range(len(dataset)), epoch)["__key__"])


def test_every_file_is_there_once(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    assert len(dataset) == SAMPLES
    batch = dataset.read(range(SAMPLES))
    paths = list(batch["__key__"])
    assert sorted(paths) == sorted({path for path in paths}) and len(set(paths)) == SAMPLES
    assert [bytes(item) for item in batch["data"]] == [content(path) for path in paths]
    assert dataset.classes == list(CLASSES)
    assert batch["label"].dtype == np.int64
    assert [CLASSES[label] for label in batch["label"]] == [path[:3] for path in paths]
    assert dataset.info()["engine"] == engine


def test_the_order_is_a_function_of_seed_and_epoch(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    assert keys(dataset) == keys(millrace.Dataset(pets, seed=3, engine=engine))
    assert keys(dataset) != keys(dataset, epoch=1)
    assert keys(dataset) != keys(millrace.Dataset(pets, seed=4, engine=engine))
    assert keys(dataset) != sorted(keys(dataset))
    in_order = millrace.Dataset(pets, shuffle=False, engine=engine)
    assert keys(millrace.Dataset(pets, shuffle="none", engine=engine)) == keys(in_order)
    assert keys(in_order) == keys(in_order, epoch=7) == sorted(keys(dataset))
    full = millrace.Dataset(pets, shuffle="full", seed=3, engine=engine)
    assert sorted(keys(full)) == sorted(keys(dataset))


def test_samples_one_by_one(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    batch = dataset.read([0, 1, SAMPLES - 1])
    sample = dataset[1]
    assert sample["__key__"] == batch["__key__"][1]
    assert sample["data"] == content(sample["__key__"]) and isinstance(sample["data"], bytes)
    assert (sample.epoch, sample.position) == (0, 1)
    assert dataset[-1]["__key__"] == batch["__key__"][2]
    assert dataset[5, 1]["__key__"] == dataset.read([1], epoch=5)["__key__"][0]
    dataset.set_epoch(5)
    assert dataset[1] == dataset[5, 1]
    for outside in (SAMPLES, -SAMPLES - 1):
        with pytest.raises(IndexError):
            dataset[outside]


def test_several_at_once_are_the_same_samples(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    assert list(dataset.__getitems__([4, 2])) == [dataset[4], dataset[2]]
    assert list(dataset.__getitems__([(1, 4), (2, 4)])) == [dataset[1, 4], dataset[2, 4]]
    assert [sample["__key__"] for sample in dataset] == keys(dataset)


def test_a_transform_sees_the_samples_own_random_numbers(pets: str) -> None:
    def transform(sample: millrace.Sample) -> float:
        return float(millrace.rng(sample).random())

    dataset = millrace.Dataset(pets, seed=3, engine="process", transform=transform)
    drawn = list(dataset.__getitems__(range(20)))
    assert len(set(drawn)) == 20 and drawn[7] == dataset[7]
    assert drawn[7] == dataset.read([7]).rng(0).random()
    dataset.set_epoch(1)
    assert drawn[7] != dataset[7]


def test_parts_by_rule_share_nothing_and_cover_all(pets: str) -> None:
    train, rest = (set(keys(millrace.Dataset(pets, split=split, engine="process")))
                   for split in ("0-90/100", "90-100/100"))
    assert not train & rest and len(train | rest) == SAMPLES
    assert len(train) == pytest.approx(0.9 * SAMPLES, abs=2)


def test_a_state_of_other_workers_is_refused(pets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchdata asks for states and loads them, in each worker."""
    dataset = millrace.Dataset(pets, engine="process")
    assert dataset.state_dict() == {"workers": 0}
    data = types.ModuleType("torch.utils.data")
    data.get_worker_info = lambda: types.SimpleNamespace(num_workers=3)  # type: ignore
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    state = dataset.state_dict()
    dataset.load_state_dict(state)
    data.get_worker_info = lambda: types.SimpleNamespace(num_workers=2)  # type: ignore
    with pytest.raises(millrace.InvalidArgumentError, match="of 3 workers, and here are 2"):
        dataset.load_state_dict(state)


def test_a_mix_by_weights(pets: str, tree: pathlib.Path) -> None:
    dataset = millrace.Dataset([pets, millrace.Source(tree, directory="cat")], weights=[1, 3],
                               epoch_samples=768, engine="process")
    assert len(dataset) == 768
    sources = dataset.read(range(768)).sources
    assert np.bincount(sources.astype(int)).tolist() == [192, 576]
    repeated = millrace.Dataset([millrace.Source(pets, repeat=2)], engine="process")
    assert len(repeated) == 2 * SAMPLES


def test_a_directory_needs_no_registration(tree: pathlib.Path, pets: str, engine: str) -> None:
    dataset = millrace.Dataset(tree, shuffle=False, engine=engine)
    assert keys(dataset) == keys(millrace.Dataset(pets, shuffle=False, engine=engine))
    sample = dataset[17]
    assert sample["data"] == content(sample["__key__"])


def test_a_pickled_dataset_is_its_options(pets: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine="process")
    assert len(pickle.dumps(dataset)) < 1000
    sample = dataset[9]
    dataset.set_epoch(2)
    assert len(pickle.dumps(dataset)) < 1000
    again = pickle.loads(pickle.dumps(dataset))
    assert again.epoch == 2 and again[0, 9] == sample


def test_a_pickled_dataset_means_what_was_open(program: Program, home: pathlib.Path,
                                               engine: str) -> None:
    name = f"moving_{engine}"
    data = home / name
    data.mkdir()
    (data / "a").write_text("a")
    program("publish", str(data), f"{name}@v1")
    program("alias", "set", f"{name}@current", "v1")
    by_alias = millrace.Dataset(f"{name}@current", engine=engine)
    by_place = millrace.Dataset(data, engine="process")
    before = pickle.dumps(by_alias)
    assert len(by_alias) == len(by_place) == 1
    pickled = [pickle.dumps(by_alias), pickle.dumps(by_place)]
    (data / "b").write_text("b")
    program("publish", str(data), f"{name}@v2")
    program("alias", "set", f"{name}@current", "v2")
    del by_place  # Who has it open shares it, as it was.
    worker, other = map(pickle.loads, pickled)
    assert worker.info()["datasets"][0]["version"] == f"{name}@v1" and len(worker) == 1
    assert len(pickle.loads(before)) == 2  # Nobody had looked yet.
    with pytest.raises(millrace.MillraceError, match="has changed since it was opened"):
        len(other)


def test_a_directory_is_shared_as_the_first_has_it_open(home: pathlib.Path, engine: str) -> None:
    data = home / f"growing_{engine}"
    data.mkdir()
    (data / "a").write_text("a")
    first, second = (millrace.Dataset(data, engine=engine) for _ in range(2))
    assert len(first) == len(second) == 1
    (data / "b").write_text("b")
    del second  # The one that was opened last is not the one to count on.
    assert len(pickle.loads(pickle.dumps(first))) == 1


def test_arrays_outlive_batch_and_dataset(pets: str, engine: str) -> None:
    dataset = millrace.Dataset(pets, seed=3, engine=engine)
    batch: Any = dataset.read(range(50))
    paths, data, labels = list(batch["__key__"]), batch["data"], batch["label"]
    item = data[49]
    del batch, data, dataset
    assert bytes(item) == content(paths[49])
    assert len(labels) == 50 and not labels.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        labels[0] = 1


def interrupted(call: Callable[[], Any]) -> float:
    """Ctrl-C during a call that takes long; how many seconds it took to be seen."""
    sent = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()
    return time.monotonic() - sent[0]


def test_an_interrupt_ends_an_open(home: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # Takes connections, says nothing.
        url = f"s3://bucket/x?endpoint=http://127.0.0.1:{silent.getsockname()[1]}"
        dataset = millrace.Dataset(url, engine="process")
        assert interrupted(lambda: len(dataset)) < 5
        assert interrupted(lambda: len(dataset)) < 5  # Nothing of the first is in the way.


def test_what_is_not_there_or_makes_no_sense(home: pathlib.Path, pets: str) -> None:
    with pytest.raises(millrace.NotFoundError, match="nothere"):
        len(millrace.Dataset("nothere@v1", engine="process"))
    with pytest.raises(millrace.MillraceError, match="missing"):
        len(millrace.Dataset(home / "missing", engine="process"))
    with pytest.raises(millrace.InvalidArgumentError, match="shuffle is 'some'"):
        millrace.Dataset(pets, shuffle="some")  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidArgumentError, match="2 weights for 1"):
        millrace.Dataset(pets, weights=[1, 2])
    with pytest.raises(millrace.InvalidArgumentError, match="reader"):
        len(millrace.Dataset(pets, reader="zip", engine="process"))
    with pytest.raises(millrace.InvalidArgumentError, match="no dataset"):
        millrace.Dataset([])


@pytest.mark.parametrize("name", ["some/cats", "some"])
def test_a_directory_that_is_not_named_as_one(tmp_path: pathlib.Path, name: str,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some" / "cats").mkdir(parents=True)
    (tmp_path / "some" / "cats" / "1").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(millrace.InvalidArgumentError, match=f"write './{name}'"):
        len(millrace.Dataset(name, engine="process"))
    assert len(millrace.Dataset(f"./{name}", engine="process")) == 1


def test_messages_name_what_the_user_did(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    dataset = millrace.Dataset(tmp_path, engine="process")
    len(dataset)
    (tmp_path / "a").unlink()
    with pytest.raises(millrace.MillraceError, match=str(tmp_path)) as failed:
        dataset[0]
    assert "@listed" not in str(failed.value)
    (tmp_path / "b.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(millrace.MillraceError, match=str(tmp_path)) as failed:
        len(millrace.Dataset(tmp_path, engine="process"))
    assert "counted@now" not in str(failed.value)
