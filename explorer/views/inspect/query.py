"""Compute one saliency map at a time, in its own process, and cache the results."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from explorer.model_client.client import ModelClient
from explorer.model_client.single_request import CachedRequest
from trainer.charts.saliency import SaliencyChart, SaliencyRun
from trainer.messages import Saliency, SaliencyAnswer
from trainer.untrusted.bounded.arrays import load_npy

Named = Callable[[int], tuple[str, str]]
"""Name and objective of a run."""


class SaliencyQuery(CachedRequest):
    """Requests saliency maps and caches the latest ones."""

    def __init__(self, client: ModelClient, named: Named, parent: QObject) -> None:
        super().__init__(client, parent)
        self._named = named

    def read(self, message: Saliency, answer: SaliencyAnswer) -> SaliencyChart:
        maps = load_npy(answer.array)
        runs = []
        for index, run in enumerate(message.runs):
            name, objective = self._named(run)
            step, cosine = answer.steps[index], answer.cosines[index]
            saliency = SaliencyRun(
                index=index, run=run, name=name, objective=objective, step=step, cells=maps[index], cosine=cosine
            )
            runs.append(saliency)
        return SaliencyChart(message.image, load_npy(answer.image), message.caption, message.method, tuple(runs))
