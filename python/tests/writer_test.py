"""Versions made from samples, by one process and by several."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

import millrace
from conftest import Program


def test_a_version_from_samples(home: pathlib.Path) -> None:
    with millrace.Writer("made@v1", notes="By a test") as writer:
        for number in range(20):
            writer.write(f"a/{number:03}", txt=f"text {number}", cls=number,
                         json={"number": number}, bin=bytes([number]))
    assert writer.result is not None and writer.result["files"] == 80
    dataset = millrace.Dataset("made@v1", shuffle=False, reader="grouped", engine="process")
    assert len(dataset) == 20
    sample = dataset[7]
    assert sample["txt"] == b"text 7" and sample["bin"] == b"\x07" and sample["cls"] == b"7"


def test_numbers_of_numpy(home: pathlib.Path) -> None:
    with millrace.Writer("numbers@v1") as writer:
        writer.write("one", cls=np.int64(3), score=np.float32(0.5), flag=np.bool_(True), own=False,
                     json={"n": np.uint8(7), "yes": [np.bool_(True), np.float64(1.5)]})
    sample = millrace.Dataset("numbers@v1", reader="grouped", engine="process")[0]
    assert (sample["cls"], sample["score"], sample["flag"], sample["own"]) == (b"3", b"0.5", b"1",
                                                                               b"0")
    assert sample["json"] == b'{"n": 7, "yes": [true, 1.5]}'
    # Each file by itself.
    assert len(millrace.Dataset("numbers@v1", engine="process")) == 5


def test_nothing_is_no_version(home: pathlib.Path) -> None:
    with pytest.raises(millrace.InvalidArgumentError, match="at least one sample"):
        with millrace.Writer("nothing@v1"):
            pass


def write_part(part: int, staging: str) -> None:
    with millrace.Writer("parts@v1", staging=staging, commit=False) as writer:
        for number in range(part * 10, part * 10 + 10):
            writer.write(f"{number:03}", txt=str(number))


def test_parts_of_several_processes(home: pathlib.Path) -> None:
    staging = str(home / "staging")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.starmap(write_part, [(part, staging) for part in range(4)])
    with millrace.Writer("parts@v1", staging=staging):
        pass
    dataset = millrace.Dataset("parts@v1", shuffle=False, engine="process")
    assert [sample["data"] for sample in dataset] == [str(n).encode() for n in range(40)]


def test_a_failure_publishes_nothing(home: pathlib.Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with millrace.Writer("failed@v1") as writer:
            writer.write("one", txt="1")
            1 / 0
    with pytest.raises(millrace.NotFoundError):
        len(millrace.Dataset("failed@v1", engine="process"))
    with millrace.Writer("failed@v1") as writer:  # The name is free, and nothing is left of it.
        writer.write("one", txt="2")
    assert millrace.Dataset("failed@v1", engine="process")[0]["data"] == b"2"


KILLED = """
import os, signal, millrace
writer = millrace.Writer("killed@v1")
writer.write("old", txt="1")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_of_a_killed_run_is_published(home: pathlib.Path) -> None:
    package = str(pathlib.Path(millrace.__file__).parents[1])
    killed = subprocess.run([sys.executable, "-c", KILLED],
                            env=os.environ | {"PYTHONPATH": package})
    assert killed.returncode == -signal.SIGKILL
    with millrace.Writer("killed@v1") as writer:
        with pytest.raises(millrace.ConflictError, match=f"process {os.getpid()} .* 'staging'"):
            millrace.Writer("killed@v1")
        writer.write("new", txt="2")
    assert writer.result is not None and writer.result["files"] == 1


def test_what_could_not_be_published_is_kept(home: pathlib.Path, program: Program) -> None:
    with millrace.Writer("kept@v1") as writer:
        writer.write("one", txt="1")
    with pytest.raises(millrace.ConflictError, match="millrace publish") as failed:
        with millrace.Writer("kept@v1") as writer:  # There is such a version.
            writer.write("two", txt="2")
    command = str(failed.value).split("'")[-2].split()
    assert command[:2] == ["millrace", "publish"] and command[3] == "kept@v1"
    program("publish", command[2], "kept@v2")
    assert list(millrace.Dataset("kept@v2", engine="process").read([0])["__key__"]) == ["two.txt"]
    with millrace.Writer("kept@v3") as writer:
        writer.write("three", txt="3")
    with pytest.raises(millrace.InvalidArgumentError, match="staging="):
        millrace.Writer("kept@v4", commit=False)


def test_what_cannot_be_written(home: pathlib.Path) -> None:
    writer = millrace.Writer("refused@v1")
    writer.write("one", txt="1")
    with pytest.raises(millrace.ConflictError, match="one"):
        writer.write("one", txt="2")
    with pytest.raises(millrace.InvalidArgumentError, match="no fields"):
        writer.write("two")
    with pytest.raises(millrace.InvalidArgumentError, match="'txt' is object"):
        writer.write("two", txt=object())  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidArgumentError, match="'json' is object"):
        writer.write("two", json={"x": object()})
    for key, field in (("t\0wo", "txt"), ("two", "t\0xt")):
        with pytest.raises(millrace.InvalidArgumentError, match="has a NUL"):
            writer.write(key, {field: "2"})
    writer.abort()
    with pytest.raises(millrace.InvalidArgumentError, match="closed"):
        writer.write("three", txt="3")
