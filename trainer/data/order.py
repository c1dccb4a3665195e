"""The order of pairs as a function of (seed, epoch), so that a resumed run continues identically."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int

from trainer.data.pairs import DataError


def steps_per_epoch(n: int, *, batch_size: int) -> int:
    """Return the number of whole batches in an epoch of `n` pairs.

    Raises:
        DataError: There is not one.
    """
    if n < batch_size:
        raise DataError(
            f"A batch of {batch_size:,} needs more than the {n:,} training pairs there are. "
            f"Set optimizer.batch_size to at most {n:,}, or add pairs."
        )
    return n // batch_size


def batches(n: int, batch_size: int, seed: int, epoch: int) -> Iterator[Int[np.ndarray, " batch"]]:
    """Yield the rows of each whole batch of an epoch, every row at most once; an incomplete batch is omitted.

    Raises:
        DataError: The pairs do not fill one batch.
    """
    steps = steps_per_epoch(n, batch_size=batch_size)
    order = np.random.default_rng([seed, epoch, _PURPOSE]).permutation(n)
    return iter(order[: steps * batch_size].reshape(steps, batch_size))


def class_batches(
    labels: Int[np.ndarray, " n"], batch_size: int, per_class: int, seed: int, epoch: int
) -> Iterator[Int[np.ndarray, " batch"]]:
    """Yield as many batches as `batches` does, each with `per_class` rows of randomly drawn classes.

    The classes take turns. Within a class no row comes again before all had their turn; where a class is drawn
    more than once for a batch, or has fewer rows than `per_class`, it has more or fewer different ones.

    Args:
        labels: Class of each row; negative: in no batch.
        batch_size: A multiple of `per_class`.
        per_class: Rows of a class drawn at a time.
        epoch: Counted from 0.
    """
    generator = np.random.default_rng([seed, epoch, _PURPOSE, per_class])
    classes = np.unique(labels[labels >= 0])
    rows = [np.flatnonzero(labels == label) for label in classes]
    turns, waiting = np.zeros(0, np.int64), [np.zeros(0, np.int64) for _ in classes]
    made = []
    for _ in range(steps_per_epoch(len(labels), batch_size=batch_size)):
        chosen = []
        for _ in range(batch_size // per_class):
            if not len(turns):
                turns = generator.permutation(len(classes))
            label, turns = turns[0], turns[1:]
            while len(waiting[label]) < per_class:
                waiting[label] = np.concatenate([waiting[label], generator.permutation(rows[label])])
            chosen.append(waiting[label][:per_class])
            waiting[label] = waiting[label][per_class:]
        made.append(np.concatenate(chosen))
    return iter(made)


def word_batches(
    bags: Sequence[Sequence[int]], batch_size: int, seed: int, epoch: int
) -> Iterator[Int[np.ndarray, " batch"]]:
    """Yield as many batches as `batches` does, each row drawn uniformly from those with a uniformly drawn word.

    Class-uniform sampling of Joulin et al., Learning Visual Features from Large Weakly Supervised Data, 2015,
    https://arxiv.org/abs/1511.02251, section 3. Rows without a word are in no batch; others may come again.

    Args:
        bags: The words of each row, as numbers.
        batch_size: Rows of a batch.
        epoch: Counted from 0.

    Raises:
        DataError: The rows do not fill one batch.
    """
    generator = np.random.default_rng([seed, epoch, _PURPOSE, 0xBA6])
    rows = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
    tokens = np.concatenate([np.asarray(bag, np.int64) for bag in bags])
    by_word = rows[np.argsort(tokens, kind="stable")]
    _, count = np.unique(tokens, return_counts=True)
    first = np.cumsum(count) - count
    shape = (steps_per_epoch(len(bags), batch_size=batch_size), batch_size)
    drawn = generator.integers(len(count), size=shape)
    return iter(by_word[first[drawn] + (generator.random(shape) * count[drawn]).astype(np.int64)])


_PURPOSE = 0x0D3E
"""Keeps the order independent of other generators seeded with (seed, epoch)."""
