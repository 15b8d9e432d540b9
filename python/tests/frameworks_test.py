"""Training frameworks over our loaders, as docs/python.md says. Skipped where they are missing."""

from __future__ import annotations

from typing import Any

import pytest

import millrace
from conftest import SAMPLES

torch = pytest.importorskip("torch", reason="torch is not installed")


def test_lightning_trains_over_a_loader(pets: str, engine: str) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Counting(lightning.LightningModule):  # type: ignore[name-defined,misc]
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
    loader = millrace.Loader(millrace.Dataset(pets, seed=3, engine=engine), 100, torch=True)
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
