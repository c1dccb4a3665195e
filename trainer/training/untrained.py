"""Which runs measure their untrained model before their training pictures are drawn."""

from __future__ import annotations

from trainer import config
from trainer.checkpoints import checkpoint
from trainer.store import RunLog


def may_be_measured_ahead(run: config.Run, log: RunLog) -> bool:
    """Return whether the run begins, with its own tokenizer and an objective that no training picture has a part in."""
    trains_tokenizer = not run.model.tokenizer.strip()
    masks = getattr(run.objective, "mask_duplicates", True)
    begins = run.optimizer.epochs > 0 and not checkpoint.steps(log.folder / "checkpoints")
    return trains_tokenizer and run.objective.compares_pairs and not masks and begins
