"""Class names in templates, embedded once per checkpoint and cached with the run (`trainer.store.derived`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from trainer.analysis.class_prompts import captioned
from trainer.analysis.progress import Progress, silent
from trainer.charts import ChartError
from trainer.charts.class_task import ClassTexts, read_class_texts, write_class_texts
from trainer.inference.embed import embed_sentences
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.messages import EmbedClasses
from trainer.store import derived
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files


def class_texts(models: ModelCache, question: EmbedClasses, progress: Progress = silent) -> Path:
    """Return the file (for `trainer.charts.class_task.read_class_texts`) of every class in every template.

    Raises:
        AnswerError: As `ModelCache.get`; no label or template; a template without `{}`; a run without texts.
    """
    labels, templates = question.labels, question.templates
    _check(labels, templates)
    model = models.get(question.run, question.step)
    run_row = models.workspace.runs.get(question.run)
    inv_tau = model.inv_tau
    key = json.dumps([model.opened.step, inv_tau, model.logit_bias, labels, templates])
    manifest = run_row.folder / "checkpoints" / f"step_{model.opened.step:06d}" / "manifest.json"
    manifest_bytes = untrusted_files.read_bytes(manifest, untrusted_files.MOST_SETTINGS) if manifest.is_file() else b""
    seed = key.encode() + manifest_bytes
    folder = derived.root(models.workspace.folder) / "runs" / run_row.folder.name
    file = folder / "scratch" / f"class-texts-{hashlib.sha256(seed).hexdigest()[:24]}.npy"
    if _usable(file):
        return file
    sentences = [captioned(template, label) for template in templates for label in labels]
    vectors = embed_sentences(model.opened, sentences, progress)
    texts = ClassTexts(
        run_row.id,
        model.opened.step,
        inv_tau,
        labels,
        templates,
        vectors.reshape(len(templates), len(labels), -1),
        model.logit_bias,
    )
    confined.make_in_run(folder, "scratch")
    write_class_texts(file, texts)
    return file


def _usable(file: Path) -> bool:
    try:
        read_class_texts(file)
    except ChartError:
        return False
    return True


def _check(labels: Sequence[str], templates: Sequence[str]) -> None:
    if len(labels) < 2:
        raise AnswerError("bad_question", "There are no two labels to choose from.", "Write at least two.")
    check_templates(templates)


def check_templates(templates: Sequence[str]) -> None:
    """Raise an `AnswerError` where there is no template, or one without a place for the label."""
    if not templates:
        raise AnswerError("bad_question", "There is no template.", "Write one such as: a photo of a {}.")
    for template in templates:
        if "{}" not in template:
            raise AnswerError(
                "bad_question", f"The template {template!r} has no {{}}.", "Write {} where the label belongs."
            )
