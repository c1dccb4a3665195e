"""The public Python API: stable from this version on. Everything else in `trainer` may change.

    from trainer import api as ce

    ws = ce.workspace("runs")
    run = ce.fit(data="photos", workspace=ws)
    run.curves().plot("step", "val/image_to_text_r1")
    model = run.model()
    cosines = model.encode_image(["dog.jpg"]) @ model.encode_text(["a dog", "a cat"]).T
    ce.charts.hubness(run, k=10).save("hubness.pdf")
    ce.live_map(run, color="label")  # in a notebook

A training of another program is logged by `log_run`, or by what its framework calls: `LightningLogger` and
`LightningCallback`, `TransformersCallback`.

Importing this module is quick: torch, matplotlib and pandas are loaded when a call needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from trainer.api.fitting import fit
from trainer.api.runs import RunHandle, RunModel, SnapshotArrays
from trainer.api.widgets import live_map
from trainer.api.workspaces import OpenWorkspace, workspace
from trainer.companion.run_logger import LoggingWarning, RunLogger, log_run

if TYPE_CHECKING:
    from trainer import losses
    from trainer.api import charts
    from trainer.companion.lightning_callback import LightningCallback
    from trainer.companion.lightning_logger import LightningLogger
    from trainer.companion.transformers_callback import TransformersCallback

__all__ = [
    "LightningCallback",
    "LightningLogger",
    "LoggingWarning",
    "OpenWorkspace",
    "RunHandle",
    "RunLogger",
    "RunModel",
    "SnapshotArrays",
    "TransformersCallback",
    "charts",
    "fit",
    "live_map",
    "log_run",
    "losses",
    "workspace",
]

_OF_FRAMEWORKS = {
    "LightningCallback": "trainer.companion.lightning_callback",
    "LightningLogger": "trainer.companion.lightning_logger",
    "TransformersCallback": "trainer.companion.transformers_callback",
}
"""Class -> its module, which imports the framework."""


def __getattr__(name: str) -> Any:
    # `losses` needs torch, and `charts` reads the registry.
    if name == "losses":
        return importlib.import_module("trainer.losses")
    if name == "charts":
        return importlib.import_module("trainer.api.charts")
    if name in _OF_FRAMEWORKS:
        return getattr(importlib.import_module(_OF_FRAMEWORKS[name]), name)
    raise AttributeError(f"module 'trainer.api' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
