"""Embed a chart's query or sentences that no snapshot contains, with the model of each run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer.analysis.progress import Progress
from trainer.charts.class_task import ClassWords, class_words
from trainer.charts.outside_query import OutsideQuery
from trainer.charts.snapshots import choose_snapshot, embedder_of, step_that_embeds
from trainer.charts.spec import Chart, Outside, Request, Rows, Target
from trainer.errors import UserError
from trainer.untrusted.terminal import say

if TYPE_CHECKING:
    from trainer.inference.open_model import OpenModel
    from trainer.store import Workspace


def with_vectors(
    workspace: Workspace, chart: Chart[Any, Any], request: Request, settings: Any, progress: Progress
) -> Request:
    """Return the request with the embedded query or sentences, if the chart has any for these settings.

    Raises:
        UserError: The image cannot be read, or a run has no checkpoint to embed with.
    """
    if chart.sentences is not None:
        outside = chart.outside(workspace, request, settings)
        if not (outside.texts or outside.files):
            return request
        lenient = chart.targets is not None
        vectors = tuple(_of_outside(workspace, outside, target, lenient) for target in outside.request.targets)
        return replace(request, vectors=vectors, places=_places(vectors, outside, progress))
    if isinstance(settings, ClassWords):
        return replace(request, class_texts=class_files(workspace, request, settings, progress))
    if isinstance(settings, OutsideQuery) and settings.is_outside:
        rows = (_of_query(workspace, request, target, settings, progress) for target in request.targets)
        return replace(request, vectors=tuple(rows))
    return request


def class_files(workspace: Workspace, request: Request, settings: ClassWords, progress: Progress) -> tuple[str, ...]:
    """Return the class vector files at each target's snapshot step, embedding missing ones."""
    from trainer.inference.class_embeddings import class_texts
    from trainer.inference.model_cache import ModelCache
    from trainer.messages import EmbedClasses

    named: dict[str, Any] = {
        "suite": settings.suite or None,
        "labels": settings.labels or None,
        "templates": settings.templates or None,
    }
    labels, templates = class_words(workspace, request.targets[0].run, **named)
    models, files = ModelCache(workspace, keep=1), []
    for target in request.targets:
        row = workspace.runs.get(target.run)
        step = choose_snapshot(workspace, row, step=target.step, dataset=request.dataset, split=request.split).step
        question = EmbedClasses(run=row.id, labels=tuple(labels), templates=tuple(templates), step=step)
        files.append(str(class_texts(models, question, progress)))
    return tuple(files)


def _step_of(workspace: Workspace, request: Request, target: Target) -> int:
    return step_that_embeds(workspace, target.run, step=target.step, dataset=request.dataset, split=request.split)


def _of_outside(workspace: Workspace, outside: Outside, target: Target, lenient: bool) -> Rows | str:
    """Return what the target's model makes of texts and files; where `lenient`, a sentence if it has no checkpoint."""
    from trainer.analysis.progress import silent
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.word_model import word_vectors

    vectors = None
    try:
        opened = _opened(workspace, target.run, _step_of(workspace, outside.request, target))
        if outside.of_words and opened.model.text is None:
            vectors = word_vectors(workspace, workspace.runs.get(target.run), opened, outside.texts, silent)
    except UserError as problem:
        if lenient:
            return str(problem)
        raise
    rows = _rows(vectors if vectors is not None else embed_sentences(opened, outside.texts)) if outside.texts else ()
    if outside.files:
        embedded = embed_files(opened, outside.files)
        for file, reason in embedded.unreadable.items():
            raise UserError(f"Could not read {file}: {reason} Choose another image.")
        rows += _rows(embedded.vectors)
    return rows


def _places(vectors: tuple[Rows | str, ...], outside: Outside, progress: Progress) -> tuple[Rows | str, ...]:
    """Return where the vectors of each target's texts stand, or its sentence; nothing where none are placed."""
    placement = outside.placement
    if placement is None:
        return ()
    from trainer.projection.fitting import placed

    def places(rows: Rows) -> Rows:
        # What has no vector, a word outside of a vocabulary, has no place.
        texts = np.array(rows[: len(outside.texts)])
        embedded, points = texts.any(axis=1), np.full((len(texts), 2), np.nan)
        points[embedded] = placed(texts[embedded], placement, progress)
        return _rows(points)

    return tuple(rows if isinstance(rows, str) else places(rows) for rows in vectors)


def _of_query(
    workspace: Workspace, request: Request, target: Target, settings: OutsideQuery, progress: Progress
) -> Rows:
    from trainer.inference.embed import embed_files, embed_sentences

    row = workspace.runs.get(target.run)
    chosen = choose_snapshot(workspace, row, step=target.step, dataset=request.dataset, split=request.split)
    by = embedder_of(workspace, chosen)
    if by.note:
        say(f"{row.short_name}: {by.note}", error=True)
    opened = _opened(workspace, row.id, by.step)
    if settings.query_text:
        return _rows(embed_sentences(opened, [settings.query_text], progress))
    embedded = embed_files(opened, [settings.query_image], progress)
    if not embedded.images:
        reason = next(iter(embedded.unreadable.values()))
        raise UserError(f"Could not read {settings.query_image}: {reason} Choose another image.")
    return _rows(embedded.vectors[:1])


def _opened(workspace: Workspace, run_id: int | str, step: int | None) -> OpenModel:
    from trainer.inference.model_cache import ModelCache

    return ModelCache(workspace).get(workspace.runs.get(run_id).id, step).opened


def _rows(vectors: Any) -> Rows:
    return tuple(tuple(row) for row in vectors.tolist())
