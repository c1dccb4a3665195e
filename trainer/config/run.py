"""The complete configuration of a run: its sections, optimization and monitoring."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Union, get_args, get_origin

from trainer.config.data import Data, Scenes
from trainer.config.fields import option
from trainer.config.model import Model, TinyTowers
from trainer.config.objectives import Clip, Objective
from trainer.config.optimizer import Optimizer
from trainer.config.tuning import Tuning


@dataclass(frozen=True, kw_only=True)
class Watching:
    """How often the run is evaluated, and what it saves."""

    log_every: int = option(
        5, "Log every", "Steps between two rows of training curves.", low=1, high=100_000, unit="steps"
    )
    evaluate_every: int = option(
        50, "Evaluate every", "Steps between two validations.", low=1, high=1_000_000, unit="steps"
    )
    snapshots: int = option(
        6, "Snapshots", "Held-out embeddings kept over the run, first and last included.", low=2, high=1000
    )
    checkpoint_every: int = option(
        200, "Checkpoint every", "Steps between two checkpoints.", low=1, high=1_000_000, unit="steps"
    )
    checkpoints_kept: int = option(
        3,
        "Checkpoints kept",
        "Number of newest checkpoints to keep, besides the best. With more, earlier steps can be decoded and replayed.",
        low=3,
        high=1000,
        advanced=True,
    )
    features: bool = option(
        False,
        "Keep features",
        "Keep the image tower's features before the projection with every snapshot, for linear probes.",
        advanced=True,
    )

    def snapshot_steps(self, total_steps: int) -> set[int]:
        """Return the steps of the snapshots: evenly apart, the first and the last step included."""
        apart = total_steps / max(1, self.snapshots - 1)
        return {round(number * apart) for number in range(self.snapshots)}


@dataclass(frozen=True, kw_only=True)
class Run:
    """The configuration that determines what a run computes."""

    name: str = option("run", "Name", "Unique in the workspace.")
    seed: int = option(0, "Seed", "Seeds weight init, data order and augmentation.", low=0)
    device: Literal["auto", "cpu", "cuda", "mps"] = option(
        "auto", "Device", "auto takes the first of cuda, mps, cpu.", advanced=True
    )
    compile: Literal["off", "default", "reduce-overhead"] = option(
        "off",
        "Compile towers",
        "By torch.compile, at the first step; reduce-overhead records CUDA graphs. For long runs on GPUs: on CPUs it "
        "takes minutes and hardly makes small towers faster.",
        advanced=True,
    )
    ranks: int = option(
        1,
        "Processes",
        "Data-parallel processes (one per GPU). The loss is identical to that of a single process.",
        low=1,
        high=64,
        advanced=True,
    )
    loading: Literal["auto", "prepared", "streamed"] = option(
        "auto",
        "Images",
        "prepared: decoded once and kept. streamed: decoded again in every epoch. auto: prepared where they fit.",
        advanced=True,
    )
    workers: int = option(
        0,
        "Decoding processes",
        "How many decode streamed images ahead of the training; 0: one for each core.",
        low=0,
        high=64,
        advanced=True,
    )
    data: Data = field(default_factory=Scenes)
    model: Model = field(default_factory=TinyTowers)
    objective: Objective = field(default_factory=Clip)
    optimizer: Optimizer = field(default_factory=Optimizer)
    tuning: Tuning = field(default_factory=Tuning)
    watching: Watching = field(default_factory=Watching)


def choices(section: Any) -> tuple[type[Any], ...]:
    """Return the dataclasses allowed for a section (`Data`, `Model`, `Objective`), in form order."""
    if isinstance(section, types.UnionType) or get_origin(section) is Union:
        return get_args(section)
    return (section,)


SECTIONS: Final[dict[str, tuple[type[Any], ...]]] = {
    "data": choices(Data),
    "model": choices(Model),
    "objective": choices(Objective),
    "optimizer": (Optimizer,),
    "tuning": (Tuning,),
    "watching": (Watching,),
}
"""Section of the TOML file -> the dataclasses it may hold; sections with a `kind` are told apart by it."""
