"""Methods: how a batch becomes a loss. One entry of the table for each objective of `trainer.config`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trainer import config
from trainer.methods.batch import Batch
from trainer.methods.image_text import ClipPairs, CloobPairs, ImageText

__all__ = ["METHODS", "Batch", "ImageText", "build"]

METHODS: Final[dict[type, Callable[[Any], ImageText]]] = {
    config.Clip: ClipPairs,
    config.Cloob: CloobPairs,
}
"""Objective of the configuration -> the method that minimises it."""

assert set(METHODS) == set(config.choices(config.Objective)), (
    f"objectives without a method, or methods without an objective: "
    f"{set(METHODS) ^ set(config.choices(config.Objective))}"
)


def build(objective: config.Objective) -> ImageText:
    """The method of an objective, at its first step."""
    return METHODS[type(objective)](objective)
