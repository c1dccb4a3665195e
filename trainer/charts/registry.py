"""The registry of charts by view; a new chart is a file in this folder and its name here.

The file of the chart `two-words` is `two_words.py`, and the chart is its `CHART`. Those of other packages are plug-ins.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from trainer.charts import ChartError
from trainer.charts.spec import Chart
from trainer.plugins import load_all

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
    return (*(name for group in BUILT_IN.values() for name in group), *load_all().charts)


def charts_of(view: str) -> tuple[Chart[Any, Any], ...]:
    """Return the charts of a view, in the order of the tabs."""
    others = (chart for chart in load_all().charts.values() if chart.view == view)
    return (*(load(name) for name in BUILT_IN.get(view, ())), *others)


def load(name: str) -> Chart[Any, Any]:
    """Return the chart with this name.

    Raises:
        ChartError: There is none.
    """
    if name in load_all().charts:
        return load_all().charts[name]
    if not any(name in group for group in BUILT_IN.values()):
        raise ChartError(f"There is no chart {name!r}. Choose one of {', '.join(names())}.")
    return importlib.import_module(f"trainer.charts.{name.replace('-', '_')}").CHART
