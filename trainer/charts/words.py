"""Importance of each word of a caption for each run: the drop in cosine and the image's rank without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int

from trainer.analysis.leave_one_word_out import caption_effect, without_each_word
from trainer.analysis.progress import Progress
from trainer.analysis.separation import unmatched_deviation
from trainer.charts import BOTH, ChartError
from trainer.charts.marks import Bars, NumberTable, Panel, XYPlot, axis_over, categories, run_tone
from trainer.charts.matching import matching_of
from trainer.charts.measure import Measure, facts_of, measure_table
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.snapshot_label import SnapshotLabel, shown
from trainer.charts.spec import Chart, PerRun, Records, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace

METHOD: Final = """\
Each run's model embeds the caption of a pair, and the caption without each of its words. The drop is the cosine of \
image and caption minus that without the word; a negative one says that the caption fits better without it. The rank \
is that of the pair's image among all images of the split; 1 is best.

Cosines are not comparable across runs: the drop is given in standard deviations of the run's own unmatched cosines, \
of at most 100,000 unmatched pairs drawn at random (seed 0). Words that are left out change the sentence too: a drop \
does not reflect only the meaning of the word."""

UNITS: Final = {"deviations": "Unmatched deviations", "cosine": "Cosine"}


@dataclass(frozen=True)
class WordsSettings:
    """The settings of the chart."""

    units: Literal["deviations", "cosine"] = option(
        "deviations",
        "Unit",
        "Standard deviations of the run's unmatched cosines, which compare runs, or plain cosines, which do not.",
        redraws=True,
        named=UNITS,
    )
    pair: int = option(0, "Pair", "The pair, a row of the snapshot.", low=0, control=False)
    caption: str = option("", "Caption", "A text to analyze instead of the pair's own caption.", control=False)


@dataclass(frozen=True, kw_only=True)
class WordsRun(SnapshotLabel):
    """One run's numbers of a caption."""

    pair: int  # Row of the pair.
    path: str
    own: str  # Its caption; `caption` is the one that was taken apart.
    caption: str
    words: tuple[str, ...]  # Of `caption`.
    n: int  # Images among which the pair's own is ranked.
    deviation: float  # Standard deviation of the run's unmatched cosines; NaN where there are none.
    cosine: float  # With the whole caption.
    rank: int  # Of the pair's image among all, for the whole caption; 1 is best.
    cosines: Float[np.ndarray, " w"]  # With each word left out.
    ranks: Int[np.ndarray, " w"]  # With each word left out.

    @property
    def falls(self) -> Float[np.ndarray, " w"]:
        """The drop in cosine without each word; negative if it rises."""
        return self.cosine - self.cosines


def sentences(workspace: Workspace, request: Request, settings: WordsSettings) -> tuple[str, ...]:
    """Return the caption, then the caption without each word; the first target's caption is used for all.

    Raises:
        ChartError: There is no such snapshot or pair, or the caption has no words.
    """
    if not request.targets:
        raise ChartError("Words needs a run. Choose a run.")
    snapshot = _opened(workspace, request.targets[0], request, settings.pair).snapshot
    said = settings.caption or snapshot.items.caption[settings.pair]
    names, reduced = without_each_word(said)
    if not names:
        raise ChartError("The caption has no words. Type some, or choose another pair.")
    return (said, *reduced)


def words(
    workspace: Workspace, target: Target, request: Request, settings: WordsSettings, progress: Progress
) -> WordsRun:
    """Return the words' importance for one target; row 0 of its vectors is the whole caption.

    Raises:
        ChartError: There is no such snapshot, image or pair, or the model could not embed the caption.
    """
    vectors = request.vectors_of(target)
    opened = _opened(workspace, target, request, settings.pair)
    snapshot = opened.snapshot
    if snapshot.image is None:
        raise ChartError(f"Run {opened.run.short_name} has no images to rank. {BOTH}")
    progress(0.0, "ranking images")
    cosines, ranks = caption_effect(vectors.astype(np.float32), snapshot.image, settings.pair)
    deviation = float("nan")
    if snapshot.text is not None:
        deviation = unmatched_deviation(snapshot.image, snapshot.text, matching_of(snapshot).texts)
    said = sentences(workspace, request, settings)[0]
    return WordsRun(
        **shown(opened.run, opened.row),
        pair=settings.pair,
        path=snapshot.items.path[settings.pair],
        own=snapshot.items.caption[settings.pair],
        caption=said,
        words=without_each_word(said)[0],
        n=snapshot.n,
        deviation=deviation,
        cosine=float(cosines[0]),
        rank=int(ranks[0]),
        cosines=cosines[1:],
        ranks=ranks[1:],
    )


def draw(data: PerRun[WordsRun], settings: WordsSettings) -> Panel:
    """Draw a bar per word and run, with the rank without each word next to them."""
    first, plain = data.found[0], settings.units == "cosine"
    falls_of = [run.falls if plain else run.falls / _deviation(run) for run in data.found]
    bars = tuple(
        Bars(name, run_tone(index), tuple(falls.tolist()))
        for (_, index, name), falls in zip(data.named, falls_of, strict=True)
    )
    y = axis_over(f"drop in cosine without the word{'' if plain else ' (σ)'}", falls_of, include=(0,), margin=0.12)
    plot = XYPlot(
        "falls", "Contribution of each word", categories("", first.words), y, bars=bars, names=first.words, lying=True
    )
    notes = (
        f"“{first.caption}”, pair {first.pair}.",
        "Cosines are not comparable across runs: compare ranks."
        if plain
        else "σ: standard deviation of the run's own unmatched cosines.",
    )
    return Panel(title="Contribution of each word", rows=((plot, _table(data)),), notes=notes)


def _deviation(run: WordsRun) -> float:
    if run.deviation > 0:
        return run.deviation
    raise ChartError(f"The unmatched cosines of run {run.name} do not vary, so there is no unit. Set Unit to Cosine.")


def _rank_without(word: str, at: int) -> Measure[WordsRun]:
    return Measure(f"without “{word}”", "The rank without this word.", lambda run: run.ranks[at], 0)


def _table(data: PerRun[WordsRun]) -> NumberTable:
    measures: tuple[Measure[WordsRun], ...] = (
        Measure("whole caption", "The rank for the whole caption.", lambda run: run.rank, 0, strong=True),
        *(_rank_without(word, at) for at, word in enumerate(data.found[0].words)),
        Measure("of images", "How many are ranked.", lambda run: run.n, 0),
    )
    return measure_table("ranks", "Rank of the image", data.labels, measures, data.found)


def values(data: PerRun[WordsRun], _settings: WordsSettings) -> list[dict[str, Any]]:
    """Return facts, cosine and rank of the whole caption, then the drops and ranks without each word."""
    return [
        facts_of(run, "pair", "caption", "n", "deviation", "cosine", "rank")
        | {"falls": run.falls.tolist(), "ranks": run.ranks.tolist()}
        for run in data.found
    ]


def records(data: PerRun[WordsRun], _settings: WordsSettings) -> Records:
    """Return cosine and rank of the caption, then without each word."""
    facts = ("run", "name", "objective", "step", "dataset", "split", "pair", "n", "deviation")
    return (*facts, "word", "left_out", "cosine", "rank"), [
        (*(getattr(run, name) for name in facts), *line)
        for run in data.found
        for line in (
            (None, run.caption, run.cosine, run.rank),
            *zip(range(len(run.words)), run.words, run.cosines.tolist(), run.ranks.tolist(), strict=True),
        )
    ]


def _opened(workspace: Workspace, target: Target, request: Request, pair: int) -> OpenedSnapshot:
    opened = open_target(workspace, target, request)
    if not 0 <= pair < opened.snapshot.n:
        raise ChartError(f"There is no pair {pair}; this snapshot has the pairs 0 to {opened.snapshot.n - 1:,}.")
    return opened


CHART: Final = Chart(
    view="similarity",
    label="Words",
    question="How much does each word contribute to the cosine of a caption?",
    cost="Grows with n: the caption and its parts are compared with all texts.",
    method=METHOD,
    settings=WordsSettings,
    compute=per_run(words),
    draw=draw,
    values=values,
    records=records,
    sentences=sentences,
)
