"""What each word of a caption is worth to each run, and where pairs stand along axes that texts define.

Sentences are embedded by whoever asks: the window asks a trainer process, a command opens the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.leave_one_word_out import along, caption_effect, text_axis, without_each_word
from trainer.charts import BOTH, SAME, ChartError
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.snapshots import choose_snapshot, sides, step_that_embeds
from trainer.store import Workspace
from trainer.store.snapshot_files import Snapshot, read_snapshot

Embed = Callable[[int, int, Sequence[str]], np.ndarray]
"""Run, step and sentences -> their unit embeddings, a row each."""


@dataclass(frozen=True, kw_only=True)
class WordsRun(SnapshotLabel):
    """One run's view of a caption.

    Attributes:
        n: Images among which the pair's own is ranked.
        cosine: With the whole caption.
        rank: Of the pair's image among all, for the whole caption; 1 is best.
        cosines: With each word left out.
        ranks: With each word left out.
    """

    index: int
    n: int
    cosine: float
    rank: int
    cosines: Float[np.ndarray, " w"]
    ranks: Int[np.ndarray, " w"]

    @property
    def drops(self) -> Float[np.ndarray, " w"]:
        """By how much the cosine falls without each word; negative: it rises."""
        return self.cosine - self.cosines


@dataclass(frozen=True)
class WordsChart:
    """A pair's caption, or what a person typed in its place, word by word."""

    pair: int
    caption: str
    words: tuple[str, ...]
    runs: tuple[WordsRun, ...]


def words_run(
    workspace: Workspace,
    ref: int | str,
    index: int,
    vectors: Float[np.ndarray, "w d"],
    *,
    pair: int,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
) -> WordsRun:
    """One run's part; row 0 of `vectors` is the whole caption, the others leave out a word each.

    Raises:
        ChartError: There is no such snapshot, image or pair.
    """
    facts, snapshot = _opened(workspace, ref, step, dataset, split, pair)
    cosines, ranks = caption_effect(vectors, snapshot.image, pair)
    whole = {"cosine": float(cosines[0]), "rank": int(ranks[0])}
    return WordsRun(**facts, index=index, n=snapshot.n, **whole, cosines=cosines[1:], ranks=ranks[1:])


def words(
    workspace: Workspace,
    runs: Sequence[int | str],
    embed: Embed,
    *,
    pair: int,
    caption: str | None = None,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    step_b: int | None = SAME,
) -> WordsChart:
    """What each word of the pair's caption (or of `caption`) is worth to each run; `step_b` is the second one's own.

    Raises:
        ChartError: There is no such snapshot, image or pair, its checkpoint is gone, or the caption has no words.
    """
    made, said = [], caption
    for index, (ref, at) in enumerate(sides(runs, step, step_b)):
        chosen = {"step": at, "dataset": dataset, "split": split}
        facts, snapshot = _opened(workspace, ref, at, dataset, split, pair)
        said = snapshot.items.caption[pair] if said is None else said
        names, reduced = without_each_word(said)
        if not names:
            raise ChartError("The caption has no words. Type some, or choose another pair.")
        vectors = embed(facts["run"], step_that_embeds(workspace, ref, **chosen), (said, *reduced))
        made.append(words_run(workspace, ref, index, vectors, pair=pair, **chosen))
    return WordsChart(pair, said or "", without_each_word(said or "")[0], tuple(made))


@dataclass(frozen=True)
class AxisText:
    """An axis from the texts `minus` to the texts `plus`; without `minus` it is the direction of `plus`."""

    plus: tuple[str, ...]
    minus: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """For an axis: `a red ring − a blue ring`."""
        return " + ".join(self.plus) + (f" − {' + '.join(self.minus)}" if self.minus else "")

    @property
    def texts(self) -> tuple[str, ...]:
        """All its sentences."""
        return (*self.plus, *self.minus)

    @classmethod
    def parse(cls, words: str) -> AxisText:
        """Reads `a red ring; a red disc - a blue ring`: sentences apart by `;`, the negative ones after ` - `.

        Raises:
            ChartError: There is no positive sentence.
        """
        plus, _, minus = words.replace(" − ", " - ").partition(" - ")
        sides = [tuple(s.strip() for s in side.split(";") if s.strip()) for side in (plus, minus)]
        if not sides[0]:
            raise ChartError("An axis needs a sentence, and after “ - ” the one it leads away from.")
        return cls(*sides)


@dataclass(frozen=True, kw_only=True)
class AxesRun(SnapshotLabel):
    """One run's pairs along both axes: inner products with unit directions, images and texts (n x 2)."""

    index: int
    n: int
    images: Float[np.ndarray, "n 2"] | None
    texts: Float[np.ndarray, "n 2"] | None
    labels: tuple[str, ...]


@dataclass(frozen=True)
class AxesChart:
    """The same two axes, in the words of the person, in the embedding space of each run."""

    x: AxisText
    y: AxisText
    runs: tuple[AxesRun, ...]


def axes_run(
    workspace: Workspace,
    ref: int | str,
    index: int,
    vectors: Float[np.ndarray, "s d"],
    x: AxisText,
    y: AxisText,
    *,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
) -> AxesRun:
    """One run's part; `vectors` are the sentences of `x`, then of `y`.

    Raises:
        ChartError: There is no such snapshot, or both sides of an axis mean the same to the run.
    """
    facts, snapshot = _opened(workspace, ref, step, dataset, split, None)
    directions, start = [], 0
    for axis in (x, y):
        plus = vectors[start : start + len(axis.plus)]
        minus = vectors[start + len(axis.plus) : start + len(axis.texts)]
        directions.append(text_axis(plus, minus))
        start += len(axis.texts)
        if not directions[-1].any():
            raise ChartError(f"To run {facts['name']} both sides of “{axis.words}” are the same. Choose other words.")
    places = [
        None if rows is None else np.stack([along(rows, d) for d in directions], axis=1)
        for rows in (snapshot.image, snapshot.text)
    ]
    return AxesRun(
        **facts, index=index, n=snapshot.n, images=places[0], texts=places[1], labels=tuple(snapshot.items.label)
    )


def axes(
    workspace: Workspace,
    runs: Sequence[int | str],
    embed: Embed,
    *,
    x: AxisText,
    y: AxisText,
    step: int | None = None,
    dataset: str | None = None,
    split: str | None = None,
    step_b: int | None = SAME,
) -> AxesChart:
    """Where the pairs of each run stand along two axes that texts define; `step_b` is the second run's own.

    Raises:
        ChartError: There is no such snapshot, its checkpoint is gone, or both sides of an axis mean the same.
    """
    made = []
    for index, (ref, at) in enumerate(sides(runs, step, step_b)):
        chosen = {"step": at, "dataset": dataset, "split": split}
        own = step_that_embeds(workspace, ref, **chosen)
        vectors = embed(workspace.runs.get(ref).id, own, (*x.texts, *y.texts))
        made.append(axes_run(workspace, ref, index, vectors, x, y, **chosen))
    return AxesChart(x, y, tuple(made))


def _opened(
    workspace: Workspace, ref: int | str, step: int | None, dataset: str | None, split: str | None, pair: int | None
) -> tuple[dict, Snapshot]:
    run = workspace.runs.get(ref)
    chosen = choose_snapshot(workspace, run, step=step, dataset=dataset, split=split)
    snapshot = read_snapshot(chosen.folder)
    if pair is not None and snapshot.image is None:
        raise ChartError(f"Run {run.name} has no images to rank. {BOTH}")
    if pair is not None and not 0 <= pair < snapshot.n:
        raise ChartError(f"There is no pair {pair}; this snapshot has the pairs 0 to {snapshot.n - 1:,}.")
    return shown(run, chosen), snapshot
