"""The contents of each Scenes image before drawing, derived from (seed, split, index) alone."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from trainer import config
from trainer.data.pairs import DataError
from trainer.data.scenes.words import COLORS, FAVORITE_COLORS, FAVORITE_GROUNDS, GROUNDS, RELATIONS, SHAPES

Choice = TypeVar("Choice")

SPLITS: Final = ("train", "renderings", "combinations")


@dataclass(frozen=True)
class Thing:
    """A colored shape."""

    color: str
    shape: str


@dataclass(frozen=True)
class Scene:
    """A larger subject, a smaller object, the subject's relation to the object, and their ground."""

    subject: Thing
    object: Thing
    relation: str
    ground: str

    @property
    def caption(self) -> str:
        """The sentence that is true of this scene and of no other."""
        return f"{_named(self.subject)} {self.relation} {_named(self.object)} {GROUNDS[self.ground]}"

    @property
    def metadata(self) -> dict[str, str]:
        """The words of the caption by role."""
        return {
            "subject_color": self.subject.color,
            "subject_shape": self.subject.shape,
            "object_color": self.object.color,
            "object_shape": self.object.shape,
            "relation": self.relation,
            "ground": self.ground,
        }


def random(seed: int, *names: int | str) -> np.random.Generator:
    """Return a separate generator for each purpose, the same in every process and on every machine."""
    entropy = [zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *entropy])))


def unseen_things(seed: int) -> frozenset[Thing]:
    """Return the tenth of all colored shapes excluded from training: one color per shape, no color twice.

    None is a favorite, so co-occurrence never asks for what may not be shown.
    """
    generator = random(seed, "unseen things")
    while True:
        colors = generator.permutation(list(COLORS))[: len(SHAPES)]
        things = [Thing(str(color), shape) for color, shape in zip(colors, SHAPES, strict=True)]
        if not any(thing.color in FAVORITE_COLORS[thing.shape] for thing in things):
            return frozenset(things)


def plan_scenes(scenes: config.Scenes) -> dict[str, list[Scene]]:
    """Return split -> its scenes, in order.

    `train` follows the co-occurrence. `renderings` repeats captions of `train`, each once, for other drawings.
    `combinations` has subjects never shown in training, each caption once, without co-occurrence.

    Raises:
        DataError: There are fewer distinct captions than held-out pairs were asked for.
    """
    return {split: list(planned) for split, planned in _planned(scenes).items()}


@functools.lru_cache(maxsize=1)
def _planned(scenes: config.Scenes) -> dict[str, list[Scene]]:
    # Kept, as a new run asks for each of its splits, which takes half a second each time.
    unseen = unseen_things(scenes.seed)
    train = [_training_scene(scenes, index, unseen) for index in range(scenes.train_pairs)]
    return {
        "train": train,
        "renderings": _renderings(scenes, train),
        "combinations": _combinations(scenes, unseen),
    }


def _training_scene(scenes: config.Scenes, index: int, unseen: frozenset[Thing]) -> Scene:
    generator = random(scenes.seed, "train", index, "scene")
    subject = _thing(generator, scenes.cooccurrence, unseen)
    other = _thing(generator, scenes.cooccurrence, unseen | {subject})
    grounds = FAVORITE_GROUNDS[subject.shape] if generator.random() < scenes.cooccurrence else tuple(GROUNDS)
    return Scene(subject, other, _one_of(generator, RELATIONS), _one_of(generator, grounds))


def _thing(generator: np.random.Generator, cooccurrence: float, without: frozenset[Thing]) -> Thing:
    while True:
        shape = _one_of(generator, SHAPES)
        colors = FAVORITE_COLORS[shape] if generator.random() < cooccurrence else tuple(COLORS)
        thing = Thing(_one_of(generator, colors), shape)
        if thing not in without:
            return thing


def _renderings(scenes: config.Scenes, train: list[Scene]) -> list[Scene]:
    distinct = list(dict.fromkeys(train))
    if len(distinct) < scenes.heldout_pairs:
        raise DataError(
            f"Scenes: {scenes.heldout_pairs:,} held-out pairs need as many different captions, but the "
            f"{scenes.train_pairs:,} training pairs have {len(distinct):,}. "
            "Raise the training pairs or lower the held-out pairs."
        )
    chosen = random(scenes.seed, "renderings").permutation(len(distinct))[: scenes.heldout_pairs]
    return [distinct[row] for row in chosen]


def _combinations(scenes: config.Scenes, unseen: frozenset[Thing]) -> list[Scene]:
    subjects = sorted(unseen, key=lambda thing: (thing.shape, thing.color))
    seen = [thing for shape in SHAPES for color in COLORS if (thing := Thing(color, shape)) not in unseen]
    possible = [Scene(*parts) for parts in itertools.product(subjects, seen, RELATIONS, GROUNDS)]
    if len(possible) < scenes.heldout_pairs:
        raise DataError(
            f"Scenes: there are only {len(possible):,} different captions of unseen combinations, fewer than the "
            f"{scenes.heldout_pairs:,} held-out pairs asked for. Lower the held-out pairs."
        )
    chosen = random(scenes.seed, "combinations").permutation(len(possible))[: scenes.heldout_pairs]
    return [possible[row] for row in chosen]


def _one_of(generator: np.random.Generator, choices: Sequence[Choice]) -> Choice:
    return choices[int(generator.integers(len(choices)))]


def _named(thing: Thing) -> str:
    article = "an" if thing.color[0] in "aeiou" else "a"
    return f"{article} {thing.color} {thing.shape}"
