"""Which runs measure their untrained model before their training pictures are drawn."""

from __future__ import annotations

from trainer import config
from trainer.checkpoints import checkpoint
from trainer.methods.image_text import ImageText
from trainer.store import RunLog
from trainer.training.session import TrainingSession


def may_be_measured_ahead(run: config.Run, log: RunLog) -> bool:
    """Return whether the run begins, with its own tokenizer and an objective that no training picture has a part in."""
    trains_tokenizer = not run.model.tokenizer.strip()
    masks = getattr(run.objective, "mask_duplicates", True)
    begins = run.optimizer.epochs > 0 and not checkpoint.steps(log.folder / "checkpoints")
    return trains_tokenizer and run.objective.towers == "both" and not masks and begins


def reads_no_pictures_yet(training: TrainingSession) -> bool:
    """Return whether the session's method was built, and can be evaluated, without the training pictures."""
    return isinstance(training.method, ImageText) and not training.method.masks
