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
        asked = chart.outside(workspace, request, settings)
        if not (asked.texts or asked.files):
            return request
        lenient = chart.targets is not None
        vectors = tuple(_of_outside(workspace, asked, one, lenient) for one in asked.request.targets)
        return replace(request, vectors=vectors, places=_places(vectors, asked, progress))
    if isinstance(settings, ClassWords):
        return replace(request, class_texts=class_files(workspace, request, settings, progress))
    if isinstance(settings, OutsideQuery) and settings.is_outside:
        found = (_of_query(workspace, request, one, settings, progress) for one in request.targets)
        return replace(request, vectors=tuple(found))
    return request


def class_files(workspace: Workspace, request: Request, words: ClassWords, progress: Progress) -> tuple[str, ...]:
    """Return the class vector files at each target's snapshot step, embedding missing ones."""
    from trainer.inference.class_embeddings import class_texts
    from trainer.inference.model_cache import OpenModels

    named: dict[str, Any] = {
        "suite": words.suite or None,
        "labels": words.labels or None,
        "templates": words.templates or None,
    }
    labels, templates = class_words(workspace, request.targets[0].run, **named)
    models, files = OpenModels(workspace, keep=1), []
    for target in request.targets:
        row = workspace.runs.get(target.run)
        step = choose_snapshot(workspace, row, step=target.step, dataset=request.dataset, split=request.split).step
        file = class_texts(models, run=row.id, labels=labels, templates=templates, step=step, progress=progress)
        files.append(str(file))
    return tuple(files)


def _step_of(workspace: Workspace, request: Request, target: Target) -> int:
    return step_that_embeds(workspace, target.run, step=target.step, dataset=request.dataset, split=request.split)


def _of_outside(workspace: Workspace, asked: Outside, target: Target, lenient: bool) -> Rows | str:
    """Return what the target's model makes of texts and files; where `lenient`, a sentence if it has no checkpoint."""
    from trainer.analysis.progress import silent
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.word_model import word_vectors

    words = None
    try:
        opened = _opened(workspace, target.run, _step_of(workspace, asked.request, target))
        if asked.of_words and opened.model.text is None:
            words = word_vectors(workspace, workspace.runs.get(target.run), opened, asked.texts, silent)
    except UserError as problem:
        if lenient:
            return str(problem)
        raise
    rows = _rows(words if words is not None else embed_sentences(opened, asked.texts)) if asked.texts else ()
    if asked.files:
        embedded = embed_files(opened, asked.files)
        for file, reason in embedded.unreadable.items():
            raise UserError(f"Could not read {file}: {reason} Choose another image.")
        rows += _rows(embedded.vectors)
    return rows


def _places(vectors: tuple[Rows | str, ...], asked: Outside, progress: Progress) -> tuple[Rows | str, ...]:
    """Return where the vectors of each target's texts stand, or its sentence; nothing where none are placed."""
    placement = asked.placement
    if placement is None:
        return ()
    from trainer.projection.fitting import placed

    def places(rows: Rows) -> Rows:
        # What has no vector, a word outside of a vocabulary, has no place.
        texts = np.array(rows[: len(asked.texts)])
        there, found = texts.any(axis=1), np.full((len(texts), 2), np.nan)
        found[there] = placed(texts[there], placement, progress)
        return _rows(found)

    return tuple(rows if isinstance(rows, str) else places(rows) for rows in vectors)


def _of_query(
    workspace: Workspace, request: Request, target: Target, settings: OutsideQuery, progress: Progress
) -> Rows:
    from trainer.inference.embed import embed_files, embed_sentences

    row = workspace.runs.get(target.run)
    chosen = choose_snapshot(workspace, row, step=target.step, dataset=request.dataset, split=request.split)
    opened = _opened(workspace, row.id, embedder_of(workspace, chosen).step)
    if settings.query_text:
        return _rows(embed_sentences(opened, [settings.query_text], progress))
    embedded = embed_files(opened, [settings.query_image], progress)
    if not embedded.images:
        reason = next(iter(embedded.unreadable.values()))
        raise UserError(f"Could not read {settings.query_image}: {reason} Choose another image.")
    return _rows(embedded.vectors[:1])


def _opened(workspace: Workspace, run: int | str, step: int | None) -> OpenModel:
    from trainer.inference.model_cache import OpenModels

    return OpenModels(workspace).get(workspace.runs.get(run).id, step).opened


def _rows(vectors: Any) -> Rows:
    return tuple(tuple(row) for row in vectors.tolist())
