"""The public Python API: stable from this version on. Everything else in `trainer` may change.

    from trainer import api as ce

    ws = ce.workspace("runs")
    run = ce.fit(data="photos", workspace=ws)
    run.curves().plot("step", "val/image_to_text_r1")
    model = run.model()
    cosines = model.encode_image(["dog.jpg"]) @ model.encode_text(["a dog", "a cat"]).T
    ce.charts.hubness(run, k=10).save("hubness.pdf")
    ce.live_map(run, color="label")  # in a notebook

Importing this module is quick: torch, matplotlib and pandas are loaded when a call needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from trainer.api.fitting import fit
from trainer.api.runs import RunHandle, RunModel, SnapshotArrays
from trainer.api.widgets import live_map
from trainer.api.workspaces import OpenWorkspace, workspace

if TYPE_CHECKING:
    from trainer import losses
    from trainer.api import charts

__all__ = [
    "OpenWorkspace",
    "RunHandle",
    "RunModel",
    "SnapshotArrays",
    "charts",
    "fit",
    "live_map",
    "losses",
    "workspace",
]


def __getattr__(name: str) -> Any:
    # `losses` needs torch, and `charts` reads the registry.
    if name == "losses":
        return importlib.import_module("trainer.losses")
    if name == "charts":
        return importlib.import_module("trainer.api.charts")
    raise AttributeError(f"module 'trainer.api' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
