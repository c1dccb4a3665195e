"""Held-out splits, prepared for repeated embedding during training."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from trainer.analysis.class_prompts import captioned
from trainer.analysis.distinct import Matching, in_order
from trainer.data import Pairs
from trainer.data.content import matching_of, pixel_digests
from trainer.data.tokenizers import AnyTokenizer
from trainer.inference.batches import Alive, embed_features, embed_images, embed_tokens
from trainer.models import TwoTowers
from trainer.prompt_suites import PromptSuite
from trainer.store.snapshot_files import Items


@dataclass(frozen=True)
class Embedded:
    """Unit embeddings of one split by one model."""

    image: Float[np.ndarray, "n d"] | None  # Row i is image i; None for a model without an image tower.
    text: Float[np.ndarray, "n d"] | None  # Row i is its caption; None for a model without a text tower.
    # Of each class of the zero-shot task in each template; None without a task.
    prompts: Float[np.ndarray, "c t d"] | None
    # Of image i before the projection, of any length; None where they were not asked for.
    features: Float[np.ndarray, "n w"] | None = None


class HeldOut:
    """One held-out split with its captions, classes and prompts as tokens.

    Attributes:
        suite: Its zero-shot task; None without one.
        prefix: Of its logged numbers: `val`, or the split's name.
        labels: Class of each pair, -1 where it has none of the suite's.
        classes: Names of the suite's classes; none without a suite.
    """

    def __init__(
        self, pairs: Pairs, *, prefix: str, suite: PromptSuite | None, tokenizer: AnyTokenizer, context_length: int
    ) -> None:
        self.pairs = pairs
        self.suite = suite
        self.prefix = prefix
        self.labels: Int[np.ndarray, " n"] = _labels(pairs, suite)
        self.classes: tuple[str, ...] = tuple(suite.classes) if suite else ()
        self._tokens = tokenizer.encode(pairs.captions, context_length)
        self._shape = (len(suite.classes), len(suite.templates)) if suite and (self.labels >= 0).any() else None
        prompts = [captioned(t, c) for c in suite.classes for t in suite.templates] if suite and self._shape else []
        self._prompts = tokenizer.encode(prompts, context_length)

    @functools.cached_property
    def content(self) -> list[str]:
        """A hash per image, equal exactly for equal pixels; computed on first use."""
        return pixel_digests(self.pairs.images)

    @functools.cached_property
    def matching(self) -> Matching:
        """The matching of items: equal captions count as one text, equal pixels as one image."""
        return matching_of(self.pairs, self.content)

    @functools.cached_property
    def classified(self) -> Int[np.ndarray, " k"]:
        """The first row of each distinct picture that has one of the suite's classes: what zero-shot tries."""
        labeled = np.flatnonzero(self.labels >= 0)
        return labeled[in_order(self.matching.images.place[labeled])[1]]

    def items(self) -> Items:
        """Return what a snapshot stores of each pair besides its embeddings."""
        pairs, n = self.pairs, len(self.pairs)
        described = (pairs.paths, pairs.captions, pairs.labels, [pairs.split] * n, pairs.metadata)
        return Items(np.arange(n), *described, content=self.content)

    def embed(self, towers: TwoTowers, where: torch.device, *, features: bool = False, alive: Alive = None) -> Embedded:
        """Embed the split in evaluation mode, then restore the mode; `features` are what precedes the projection."""
        training = towers.training
        towers.eval()
        try:
            image = None if towers.visual is None else embed_images(towers, self.pairs.images, where, alive=alive)
            text = None if towers.text is None else embed_tokens(towers, self._tokens, where, alive=alive)
            prompts = None
            if self._shape and image is not None and text is not None:
                prompts = embed_tokens(towers, self._prompts, where, alive=alive).reshape(*self._shape, -1)
            pooled = (
                embed_features(towers, self.pairs.images, where, alive=alive)
                if features and image is not None
                else None
            )
            return Embedded(image, text, prompts, pooled)
        finally:
            towers.train(training)


def _labels(pairs: Pairs, suite: PromptSuite | None) -> Int[np.ndarray, " n"]:
    number_of = {name: i for i, name in enumerate(suite.classes)} if suite else {}
    return np.array([number_of.get(label, -1) for label in pairs.labels], dtype=np.int64)
