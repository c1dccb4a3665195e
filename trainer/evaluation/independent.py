"""Add a snapshot of Scenes with independent attributes, the same pairs for every run.

Held-out renderings are correlated like the training pairs, so an attribute can be guessed from its companions there.
Runs trained with and without co-occurrence are compared fairly on these pairs only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainer.analysis.progress import Progress, silent
from trainer.config import Scenes
from trainer.config.ablation import INDEPENDENT, INDEPENDENT_SCENES
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.store import SnapshotRow, snapshot_name, write_snapshot


def embed_independent(
    models: ModelCache,
    runs: Sequence[int | str],
    steps: Sequence[int | None] = (),
    progress: Progress = silent,
) -> list[SnapshotRow]:
    """Embed the pairs with each run's model and add the snapshots to the workspace, replacing existing ones.

    Args:
        runs: Numbers, names or folders.
        steps: Of the checkpoints, one a run, None for the newest; empty: the newest of all.
        progress: Told the share done; may raise to cancel, what is whole by then stays.

    Raises:
        AnswerError: A run was not trained on Scenes, or has no such checkpoint.
        DataError: The pictures cannot be drawn.
    """
    rows = [models.workspace.runs.get(run) for run in runs]
    for row in rows:
        if not isinstance(models.workspace.runs.config_of(row.id).data, Scenes):
            raise AnswerError(
                "bad_question",
                f"Run {row.name!r} was not trained on Scenes, so their attributes mean nothing to it.",
                "Choose runs that were trained on Scenes.",
            )
    chosen = zip(rows, steps or [None] * len(rows), strict=True)
    return [_embed(models, row.id, step, progress, index, len(rows)) for index, (row, step) in enumerate(chosen)]


def _embed(models: ModelCache, run: int, step: int | None, progress: Progress, index: int, parts: int) -> SnapshotRow:
    from trainer import data
    from trainer.evaluation import HeldOut

    workspace, row = models.workspace, models.workspace.runs.get(run)

    def report(share: float, note: str) -> None:
        progress((index + share) / parts, note)

    report(0.0, f"opening {row.short_name}")
    opened = models.get(run, step).opened
    splits = data.load(
        INDEPENDENT_SCENES,
        image_size=opened.image_size,
        preprocessing=opened.preprocessing,
        workspace_folder=workspace.folder,
        progress=lambda share, note: report(0.8 * share, note),
    )
    pairs = splits.heldout["renderings"]
    report(0.8, f"embedding {len(pairs):,} pairs with {row.short_name}")
    heldout = HeldOut(
        pairs, prefix=INDEPENDENT, suite=None, tokenizer=opened.tokenizer, context_length=opened.context_length
    )
    embedded = heldout.embed(opened.model, opened.device)
    n = len(pairs)
    name = snapshot_name(dataset=pairs.name, split=INDEPENDENT, step=opened.step)
    folder = row.folder / "snapshots" / name
    write_snapshot(
        folder,
        image=embedded.image,
        text=embedded.text,
        items=replace(heldout.items(), split=[INDEPENDENT] * n),
        step=opened.step,
        dataset=pairs.name,
        split=INDEPENDENT,
        model=row.name,
        fingerprint=pairs.fingerprint,
    )
    width = next(rows.shape[1] for rows in (embedded.image, embedded.text) if rows is not None)
    workspace.results.add_snapshot(run, opened.step, pairs.name, INDEPENDENT, folder, n=n, d=width)
    report(1.0, f"{row.short_name} is done")
    return next(s for s in workspace.results.snapshots(run) if (s.step, s.split) == (opened.step, INDEPENDENT))
