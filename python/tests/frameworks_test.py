"""Training frameworks over our loaders, as docs/python.md says. Skipped where they are missing."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest

import millrace
from conftest import SAMPLES

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def lightning(monkeypatch: pytest.MonkeyPatch) -> Any:
    # Python 3.11 refuses a default that torch 1.13 has in a dataclass, since it has no hash.
    if sys.version_info >= (3, 11) and torch.__version__.startswith("1."):
        plain = dataclasses.dataclass

        def hashable(*given: Any, **options: Any) -> Any:
            if not given:
                return lambda made: hashable(made, **options)
            made = plain(*given, **options)
            made.__hash__ = made.__hash__ or object.__hash__
            return made

        with monkeypatch.context() as patched:
            patched.setattr(dataclasses, "dataclass", hashable)
            __import__("torch.distributed._shard.sharded_tensor")
    return pytest.importorskip("pytorch_lightning", reason="Lightning is not installed")


def batches_of(dataset: millrace.Dataset, kind: str) -> Any:
    if kind == "loader":
        return millrace.Loader(dataset, 100, torch=True)
    return torch.utils.data.DataLoader(dataset, batch_sampler=millrace.BatchSampler(dataset, 100),
                                       num_workers=2, collate_fn=millrace.collate)


@pytest.mark.parametrize(("kind", "engine"), [("loader", "process"), ("loader", "daemon"),
                                              ("data_loader", "daemon")])
def test_lightning_trains(lightning: Any, pets: str, kind: str, engine: str) -> None:
    class Counting(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: list[str] = []

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen += list(batch["__key__"])
            return self.layer(batch["label"].float().unsqueeze(1)).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    module = Counting()
    loader = batches_of(millrace.Dataset(pets, seed=3, engine=engine), kind)
    trainer = lightning.Trainer(max_epochs=2, use_distributed_sampler=False, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, accelerator="cpu")
    trainer.fit(module, loader)
    first, second = module.seen[:SAMPLES], module.seen[SAMPLES:]
    assert sorted(first) == sorted(second) and len(set(first)) == SAMPLES and first != second


def test_accelerate_beside_a_loader(pets: str, engine: str) -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    accelerator = accelerate.Accelerator(cpu=True)
    model = accelerator.prepare(torch.nn.Linear(1, 1))
    loader = millrace.Loader(millrace.Dataset(pets, seed=3, engine=engine), 100, torch=True)
    seen = 0
    for batch in loader:
        accelerator.backward(model(batch["label"].float().unsqueeze(1).to(
            accelerator.device)).mean())
        seen += len(batch["label"])
    assert seen == SAMPLES
