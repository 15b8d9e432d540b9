"""Where a process learns its rank from."""

from __future__ import annotations

import sys
import types

import pytest

from millrace import (BatchSampler, Dataset, InvalidArgumentError, Loader, Ranks,
                      find_ranks)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_a_process_by_itself() -> None:
    assert find_ranks() == Ranks(0, 1, 1)


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert find_ranks() == Ranks(5, 8, None)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert find_ranks() == Ranks(5, 8, 4)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")  # Does not divide the world: not a help.
    assert find_ranks() == Ranks(5, 8, None)
    assert find_ranks(1, 2).rank == 1


def test_the_process_group_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "8")
    torch = types.ModuleType("torch")
    torch.distributed = types.SimpleNamespace(  # type: ignore[attr-defined]
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 2,
        get_world_size=lambda: 3)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert find_ranks() == Ranks(2, 3, None)


@pytest.mark.parametrize(("rank", "world", "text"), [
    (0, None, "give both"), (None, 4, "give both"), (4, 4, "0 to 3"), (-1, 2, "0 to 1")])
def test_halves_and_nonsense_are_refused(rank: int | None, world: int | None, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        find_ranks(rank, world)


def test_a_variable_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(InvalidArgumentError, match=r"\$RANK is 'first'"):
        find_ranks()


@pytest.mark.parametrize("taker", [Loader, BatchSampler])
def test_ranks_of_one_machine_do_not_read_each_by_itself(taker: type[Loader] | type[BatchSampler],
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset("pets@v1", engine="process")
    with pytest.raises(InvalidArgumentError, match="2 ranks, .* use engine='daemon'"):
        taker(dataset, 8, rank=0, world_size=4, ranks_per_node=2)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    taker(dataset, 8)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(InvalidArgumentError, match="4 ranks, .* use engine='daemon'"):
        taker(dataset, 8)
    taker(Dataset("pets@v1", engine="daemon"), 8)
    taker(Dataset("pets@v1"), 8)
