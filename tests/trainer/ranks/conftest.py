"""Ranks that are threads of one process, so that every objective can be tried in the time of one import."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from trainer import config
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.ranks import Ranks
from trainer.training.session import TrainingSession

N, SIZE = 64, 16
CAPTIONS = [f"a {color} {shape}" for color in ("red", "blue", "green", "gray") for shape in ("star", "ring")] * 8
VIT = config.TinyTowers(
    image_tower="vit", image_size=32, patch_size=16, image_width=32, image_layers=1, text_width=32, text_layers=1,
    text_heads=2, context_length=12, embed_dim=16, vocabulary=300,
)  # fmt: skip


class Meeting:
    """Where threads exchange tensors."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=60)
        self.slots: list[Any] = [None] * size


class ThreadRanks(Ranks):
    """A rank that is a thread; only the exchange differs from that of processes."""

    def __init__(self, rank: int, meeting: Meeting) -> None:
        super().__init__(rank, len(meeting.slots))
        self._meeting = meeting

    def _exchange(self, own: torch.Tensor) -> list[torch.Tensor]:
        self._meeting.slots[self.rank] = own.clone()
        self._meeting.barrier.wait()
        found = [one.clone() for one in self._meeting.slots]
        self._meeting.barrier.wait()
        return found

    def _all(self, own: torch.Tensor) -> torch.Tensor:
        return torch.stack(self._exchange(own))

    def summed(self, own: torch.Tensor) -> torch.Tensor:
        first, *others = self._exchange(own)
        for other in others:
            first += other
        return first

    def scattered(self, whole: torch.Tensor) -> torch.Tensor:
        return self.summed(whole)[self.own(len(whole))]


@pytest.fixture(scope="session")
def by_threads() -> Callable[..., list[Any]]:
    """Return what calls a function once for each rank, at the same time; it returns the results in rank order."""

    def run(size: int, act: Callable[[Ranks], Any]) -> list[Any]:
        meeting, results, errors = Meeting(size), [None] * size, []

        def one(rank: int) -> None:
            try:
                results[rank] = act(ThreadRanks(rank, meeting))
            except BaseException as error:
                errors.append(error)
                meeting.barrier.abort()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
        return results

    return run


@pytest.fixture(scope="module")
def maker():
    """Return what makes sessions of an objective on 64 random images."""
    images = np.random.default_rng(0).integers(0, 256, (N, 32, 32, 3), dtype=np.uint8)
    pairs = Pairs("toy", "train", images, CAPTIONS, [c.split()[1] for c in CAPTIONS], [f"{i}.png" for i in range(N)],
                  {}, "f")  # fmt: skip
    tokenizer, seeding = train_tokenizer(CAPTIONS, 300), threading.Lock()

    def of(objective: config.Objective, model: config.TinyTowers = VIT, micro_batch: int = 0):
        optimizer = config.Optimizer(
            batch_size=SIZE, epochs=2, learning_rate=1e-3, warmup_steps=2, micro_batch=micro_batch
        )
        run = config.Run(device="cpu", model=model, objective=objective, optimizer=optimizer)

        def make(shared):
            with seeding:  # threads share the generator that draws the weights; processes do not
                return TrainingSession(run, pairs, tokenizer, torch.device("cpu"), shared=shared)

        return make

    return of
