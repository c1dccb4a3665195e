"""Decode one embedding at a time: a first look in few steps, then the same noises in all steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from explorer.model_client.single_request import CachedRequest
from trainer.charts.decode import DecodedChart, DecodedRun, MeasuredAttribute, NearPicture
from trainer.messages import Decode
from trainer.untrusted.bounded.arrays import load_npy

FIRST_STEPS: Final = 8


class DecodeQuery(CachedRequest):
    """Requests decoded pictures, first in few steps, and caches the latest ones."""

    most = 32

    def known(self, question: Decode) -> DecodedChart | None:
        """Return the answer, or its preview in few steps, or None."""
        first = replace(question, steps=min(FIRST_STEPS, question.steps))
        return super().known(question) or super().known(first)

    def stages_of(self, question: Decode) -> list[Decode]:
        stages = [replace(question, steps=FIRST_STEPS), question] if question.steps > FIRST_STEPS else [question]
        return [stage for stage in stages if not self.is_kept(stage)]

    def read(self, _message: Decode, answer: dict[str, Any]) -> DecodedChart:
        return chart_of(answer)


def chart_of(answer: dict[str, Any]) -> DecodedChart:
    """Return the chart of an answer to `Decode`."""
    runs = []
    for index, answered in enumerate(answer["runs"]):
        pictures = load_npy(answered["pictures"])
        runs.append(
            DecodedRun(
                index=index,
                run=answered["run"],
                name=answered["name"],
                of_name=answered["of_name"],
                of_step=answered["of_step"],
                step=answered["step"],
                mean=pictures[0],
                samples=pictures[1:],
                spread=load_npy(answered["spread"]),
                nearest=tuple(NearPicture(**entry) for entry in answered["nearest"]),
                nearest_of=answered["nearest_of"],
                recovered=float("nan") if answered["recovered"] is None else answered["recovered"],
                recovered_of=answered["recovered_of"],
                measured=tuple(MeasuredAttribute(**entry) for entry in answered["measured"]),
                measured_of=answered["measured_of"],
            )
        )
    original = load_npy(answer["original"]) if answer["original"] else None
    seen = None if original is None else np.asarray(original)
    return DecodedChart(answer["title"], seen, answer["how"], tuple(answer["noises"]), tuple(runs))
