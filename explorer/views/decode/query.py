"""Decode one embedding at a time: a first look in few steps, then the same noises in all steps."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final

import numpy as np

from explorer.model_client.single_request import CachedRequest
from trainer.charts.decode import DecodedChart, DecodedRun, ReverseStrip
from trainer.messages import Decode, DecodeAnswer, RunDecoded
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

    def read(self, _message: Decode, answer: DecodeAnswer) -> DecodedChart:
        return chart_of(answer)


def chart_of(answer: DecodeAnswer) -> DecodedChart:
    """Return the chart of an answer to `Decode`."""
    runs = tuple(_run_of(index, decoded) for index, decoded in enumerate(answer.runs))
    original = np.asarray(load_npy(answer.original)) if answer.original else None
    return DecodedChart(answer.title, original, answer.how, answer.noises, runs)


def _run_of(index: int, decoded: RunDecoded) -> DecodedRun:
    facts = {field.name: getattr(decoded, field.name) for field in fields(decoded)}
    pictures = load_npy(facts.pop("pictures"))
    levels = facts.pop("levels")
    facts["reverse"] = ReverseStrip(levels, *load_npy(decoded.reverse)) if decoded.reverse else None
    facts["spread"] = load_npy(decoded.spread)
    facts["recovered"] = float("nan") if decoded.recovered is None else decoded.recovered
    return DecodedRun(index=index, mean=pictures[0], samples=pictures[1:], **facts)
