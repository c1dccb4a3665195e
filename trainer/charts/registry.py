"""The registry of charts by view; a new chart is a file in this folder and its name here.

The file of the chart `two-words` is `two_words.py`, and the chart is its `CHART`. Charts of other packages come by the
entry-point group `contrastive_explorer.charts`, by `--plugin`, or from a file that the environment variable names;
nothing that lies in a workspace is ever loaded.
"""

from __future__ import annotations

import importlib
import os
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

from trainer.charts import ChartError
from trainer.charts.spec import Chart
from trainer.plugins import installed, loaded, module_of

GROUP: Final = "contrastive_explorer.charts"
FILE: Final = "CONTRASTIVE_EXPLORER_CHART"
"""Environment variable: Python files with a `CHART` each, separated as in PATH."""

BUILT_IN: Final[dict[str, tuple[str, ...]]] = {
    "runs": ("curves",),
    "experiments": ("experiment-verdict", "experiment-curves"),
    "run_comparison": (
        "map-of-models",
        "small-multiples",
        "config-difference",
        "parallel-coordinates",
        "field-importance",
        "field-grid",
        "effective-robustness",
        "accuracy-by-size",
        "probe-by-set",
        "published-table",
    ),
    "fine_tuning": ("forgetting",),
    "timeline": ("snapshot-curves",),
    "probes": ("probe-strip",),
    "similarity": ("similarity", "matrix", "words", "axes"),
    "search": ("search", "hubness"),
    "changes": ("changes", "separated-groups", "representation-similarity"),
    "gap": ("gap",),
    "geometry": ("geometry", "concepts", "prototypes", "bad-clustering", "word-map"),
    "hopfield": (
        "hopfield-retrieval",
        "hopfield-pair",
        "hopfield-beta",
        "hopfield-batch-size",
        "hopfield-spectrum",
        "retrieval-share",
    ),
    "explaining": (
        "embedding-spectrum",
        "gradient-saturation",
        "batch-negatives",
        "replayed-step",
        "attribute-probes",
        "generative-classes",
    ),
    "prompts": ("calibration", "prompts"),
    "losslab": (
        "toy-batch",
        "loss-saturation",
        "loss-margins",
        "loss-views",
        "augmentations",
        "diffusion",
        "pixel-cnn",
        "sampling-variance",
        "softmax-cost",
        "skip-gram",
        "hopfield-temperature",
    ),
    "evaluate": (
        "evaluation-scores",
        "protocol",
        "caption-choice",
        "confusion",
        "evaluation-curves",
        "comparison",
        "groups",
        "data-efficiency",
    ),
}
"""View -> its charts, in the order of the tabs."""


def names() -> tuple[str, ...]:
    """Return the names of all charts, those of other packages last."""
    return (*(name for group in BUILT_IN.values() for name in group), *other_charts(), *loaded().charts)


def charts_of(view: str) -> tuple[Chart[Any, Any], ...]:
    """Return the charts of a view, in the order of the tabs."""
    others = tuple(chart for name in (*other_charts(), *loaded().charts) if (chart := _loadable(name)) is not None)
    return (*(load(name) for name in BUILT_IN.get(view, ())), *(chart for chart in others if chart.view == view))


def _loadable(name: str) -> Chart[Any, Any] | None:
    """Return the chart; None for one of another package that cannot be loaded, which is reported once."""
    try:
        return load(name)
    except ChartError as error:
        if str(error) not in loaded().failures:
            loaded().failures.append(str(error))
        return None


def load(name: str) -> Chart[Any, Any]:
    """Return the chart with this name.

    Raises:
        ChartError: There is none, or the file of another package does not hold what it should.
    """
    if name in loaded().charts:
        return loaded().charts[name]
    if name in other_charts():
        return load_other(name)
    if not any(name in group for group in BUILT_IN.values()):
        raise ChartError(f"There is no chart {name!r}. Choose one of {', '.join(names())}.")
    return _chart_in(importlib.import_module(f"trainer.charts.{name.replace('-', '_')}"), name)


def _chart_in(module: Any, where: str) -> Chart[Any, Any]:
    chart = getattr(module, "CHART", None)
    if not isinstance(chart, Chart):
        raise ChartError(f"{where} does not define CHART, a trainer.charts.spec.Chart.")
    return chart


@cache
def other_charts() -> dict[str, EntryPoint | Path]:
    """Return name -> entry point; a file's name is that of its chart."""
    entries: dict[str, EntryPoint | Path] = {entry.name: entry for entry in installed().select(group=GROUP)}
    for text in filter(None, os.environ.get(FILE, "").split(os.pathsep)):
        path = Path(text)
        entries[path.stem.replace("_", "-")] = path
    return entries


@cache
def load_other(name: str) -> Chart[Any, Any]:
    """Return the chart of another package or file.

    Raises:
        ChartError: It cannot be loaded, or is not called so.
    """
    source = other_charts()[name]
    try:
        if isinstance(source, Path):
            chart = _chart_in(module_of(source), str(source))
        else:
            chart = source.load()
    except ChartError:
        raise
    except (Exception, SystemExit) as error:  # whatever the code of another package raises
        raise ChartError(f"Could not load the chart {name} ({source}): {error}. Repair or remove it.") from error
    if not isinstance(chart, Chart) or chart.name != name:
        raise ChartError(f"{source} does not define a chart called {name!r}. Correct its name.")
    return chart
