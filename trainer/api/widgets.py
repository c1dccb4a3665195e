"""The zoomable maps as a widget for Jupyter and marimo."""

from __future__ import annotations

from typing import Any

from trainer.analysis.progress import silent
from trainer.api.runs import RunHandle
from trainer.charts import ChartError
from trainer.errors import UserError


class MissingWidget(UserError):
    """anywidget is not installed; the message says how to install it."""


def live_map(
    *runs: RunHandle,
    color: str = "modality",
    method: str = "pca",
    step: int | list[int | None] | None = None,
    dataset: str | None = None,
    split: str | None = None,
) -> Any:
    """Return a widget with the maps of runs: zoom, pictures under the pointer, histograms, sliders.

    Its trait `pair` is the row of the pair that is pointed at among those drawn, -1 for none; `marimo.ui.anywidget`
    and `observe` follow it.

    Args:
        *runs: Of the same pairs.
        color: `modality`, `label`, `agreement`, `rank`, `cosine`, or a column of the items.
        method: `pca`, `umap`, or with the extra `[projections]` `tsne` and `pacmap`.
        step: Of the snapshots; None: the last.
        dataset: Of the snapshots.
        split: Of the snapshots.

    Raises:
        ChartError: No run is named, or it has no such snapshot.
        MissingWidget: anywidget is not installed.
    """
    if not runs:
        raise ChartError("Name a run: live_map(run), or live_map(run_a, run_b).")
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingWidget(
            "The map needs anywidget, which is not installed. Install it: pip install 'contrastive-explorer[notebook]'"
        ) from None
    from trainer.charts.point_placement import PointPlacement
    from trainer.charts.spec import Request, targets_of
    from trainer.projection.live_maps import live_maps
    from trainer.render_html.live_map import packed, style, widget_module

    class LiveMapWidget(anywidget.AnyWidget):  # type: ignore[misc]
        """The maps of some runs."""

        _esm = widget_module()
        _css = style()
        packed = traitlets.Unicode("").tag(sync=True)
        pair = traitlets.Int(-1).tag(sync=True)

    steps = step if isinstance(step, list) else [] if step is None else [step]
    maps = live_maps(
        runs[0].store,
        Request(targets_of([run.id for run in runs], steps), dataset, split),
        placement=PointPlacement(method=method),  # type: ignore[arg-type]
        color=color,
        progress=silent,
    )
    return LiveMapWidget(packed=packed(maps))
