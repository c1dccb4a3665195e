"""A cache of recently used models, with the class vectors computed for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from trainer.analysis.class_prompts import captioned
from trainer.analysis.lru_cache import LruCache
from trainer.analysis.progress import Progress, silent
from trainer.errors import UserError
from trainer.inference.embed import embed_sentences
from trainer.store import StoreError, Workspace, on_demand

if TYPE_CHECKING:
    from trainer.inference.open_model import OpenModel
    from trainer.methods import Method

MODELS_KEPT: Final = 4
LABELS_KEPT: Final = 20_000
"""Class vectors kept for one model and one set of templates; beyond that the memory is emptied."""


class AnswerError(UserError):
    """A request that cannot be answered for an external reason.

    Attributes:
        kind: As in `trainer.messages.Failure`.
        next: What the person can do.
    """

    def __init__(self, kind: str, message: str, next: str = "") -> None:
        super().__init__(f"{message} {next}".strip())
        self.kind, self.message, self.next = kind, message, next


class CachedModel:
    """An open model, with embeddings computed by its text tower.

    Attributes:
        method: What it was trained with, as it was at that step; None where it compares no images with texts.
    """

    def __init__(self, opened: OpenModel, method: Method | None, *, name: str = "", objective: str = "") -> None:
        self.name, self.objective = name, objective
        self.opened, self.method = opened, method
        self._classes: dict[tuple[str, ...], dict[str, np.ndarray]] = {}

    @property
    def inv_tau(self) -> float:
        """The run's own inverse temperature, learned or fixed.

        Raises:
            AnswerError: The run compares no images with texts.
        """
        self._check_both()
        return self.method.inv_tau

    @property
    def logit_bias(self) -> float | None:
        """The bias of SigLIP's logits, whose probabilities are sigmoids; None where they are a softmax."""
        return None if self.method is None else self.method.logit_bias

    def _check_both(self) -> None:
        if self.method is None:
            raise AnswerError(
                "bad_question",
                f"Run {self.name!r} ({self.objective}) compares no images with texts, so labels mean nothing to it.",
                "Choose a run of CLIP, CLOOB or another objective of image-text pairs.",
            )

    def class_weights(
        self, labels: Sequence[str], templates: Sequence[str], progress: Progress = silent
    ) -> Float[np.ndarray, "labels d"]:
        """Return each label's normalized mean of its sentences' embeddings, embedding only new labels.

        Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021, section 3.1.4,
        https://arxiv.org/abs/2103.00020

        Raises:
            AnswerError: The run compares no images with texts.
        """
        self._check_both()
        cached = self._classes.setdefault(tuple(templates), {})
        if len(cached) > LABELS_KEPT:
            cached.clear()
        new = [label for label in dict.fromkeys(labels) if label not in cached]
        if new:
            sentences = [captioned(template, label) for label in new for template in templates]
            vectors = embed_sentences(self.opened, sentences, progress)
            means = vectors.reshape(len(new), len(templates), -1).mean(axis=1)
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
            cached.update(zip(new, means, strict=True))
        return np.stack([cached[label] for label in labels])


class ModelCache:
    """Models by run and checkpoint; the least recently used are closed when there are too many."""

    def __init__(self, workspace: Workspace, keep: int = MODELS_KEPT) -> None:
        self.workspace = workspace
        self._models: LruCache[tuple[int, str], CachedModel] = LruCache(keep)

    def get(self, run_id: int | str, step: int | None = None) -> CachedModel:
        """Return the model of a run at a checkpoint, the newest if `step` is None.

        A run that is still training is opened anew once it has written a newer checkpoint.

        Raises:
            AnswerError: No such run, no checkpoint yet, or none at that step.
        """
        try:
            row = self.workspace.runs.get(run_id)
        except StoreError as error:
            raise AnswerError("unknown_run", str(error)) from error
        stored = self.workspace.results.checkpoints(row.id)
        checkpoints = {checkpoint.step: checkpoint for checkpoint in stored if checkpoint.folder.is_dir()}
        if not checkpoints:
            if stored and on_demand.ask(row.folder, "checkpoints"):
                sentence = f"The checkpoint of {row.name!r} is on its way from the computer where it lies."
                raise AnswerError("no_checkpoint", sentence, "Ask again in a moment.")
            if row.no_model:
                raise AnswerError("no_checkpoint", row.no_model, "")
            raise AnswerError(
                "no_checkpoint",
                f"Run {row.name!r} has no checkpoint yet.",
                "Wait until it has written one, or stop it: stopping writes one.",
            )
        if step is not None and step not in checkpoints:
            steps = ", ".join(map(str, sorted(checkpoints)))
            raise AnswerError(
                "no_checkpoint", f"Run {row.name!r} has no checkpoint at step {step}.", f"Choose {steps}."
            )
        chosen = checkpoints[max(checkpoints) if step is None else step]
        opened_step = chosen.step if step is not None else None
        return self._models.obtain((row.id, str(chosen.folder)), lambda: self._open(row.id, opened_step))

    def _open(self, run_id: int, step: int | None) -> CachedModel:
        from trainer import methods
        from trainer.checkpoints import checkpoint
        from trainer.inference.open_model import open_run

        try:
            opened = open_run(self.workspace, run_id, step=step)
            run_row = self.workspace.runs.get(run_id)
            loaded = checkpoint.load(run_row.folder / "checkpoints" / f"step_{opened.step:06d}", training=False)
            objective = self.workspace.runs.config_of(run_id).objective
            # A decoder's towers are those of the run it decodes; it compares no images with texts itself.
            method = methods.build(objective) if objective.compares_pairs else None
            checkpoint.load_weights(loaded, {} if method is None else {"method": method})
        except checkpoint.CheckpointError as error:
            raise AnswerError("no_checkpoint", str(error)) from error
        return CachedModel(opened, method, name=run_row.short_name, objective=objective.label)
