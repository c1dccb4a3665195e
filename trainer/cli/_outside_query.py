"""Embeds the image or the text that a chart takes as its query, with the model of each run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainer.charts.outside_query import OutsideQuery
from trainer.charts.spec import Request
from trainer.cli.export import tell
from trainer.errors import UserError

if TYPE_CHECKING:
    from trainer.store import Workspace


def with_query(workspace: Workspace, request: Request, settings: Any) -> Request:
    """The request with the vectors of a query from outside, where the settings name one.

    Raises:
        Problem: The image cannot be read, or a run has no checkpoint to embed with.
    """
    if not isinstance(settings, OutsideQuery) or not settings.is_outside:
        return request
    from trainer.inference.embed import embed_files, embed_sentences
    from trainer.inference.model_cache import OpenModels

    models, vectors = OpenModels(workspace), []
    for target in request.targets:
        opened = models.get(workspace.runs.get(target.run).id, target.step).opened
        if settings.query_text:
            found = embed_sentences(opened, [settings.query_text], tell)
        else:
            embedded = embed_files(opened, [settings.query_image], tell)
            if not embedded.images:
                reason = next(iter(embedded.unreadable.values()))
                raise UserError(f"Could not read {settings.query_image}: {reason} Choose another image.")
            found = embedded.vectors
        vectors.append(tuple(found[0].tolist()))
    return replace(request, vectors=tuple(vectors))
