"""Computed colors of pairs besides columns: one run's numbers, and the agreement of two runs.

Everything is computed in the embedding space, so it is true however the map was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.distinct import answers
from trainer.analysis.pair_ranks import AGREEMENTS, agreement, rank_groups, rank_names, ranks_among
from trainer.analysis.progress import Progress, silent
from trainer.analysis.retrieval import ranks
from trainer.analysis.sampling import at_most
from trainer.analysis.similarity import matched_cosines
from trainer.charts.colored_points import ColoredPoints
from trainer.charts.matching import matching_of
from trainer.charts.metadata_columns import NO_VALUE, MetadataColumn
from trainer.charts.pair_changes import MEASURES, Changes, map_values
from trainer.store.snapshot_files import Snapshot

MODALITY: Final = "modality"
"""The coloring by which images have one color and texts another."""
CLASS: Final = "label"
AGREEMENT: Final = "agreement"
COSINE: Final = "cosine"
RANK: Final = "rank"
COMPUTED: Final = (AGREEMENT, RANK, COSINE)

MOST_RANKED: Final = 50_000
"""Pairs up to which every image is compared with every caption."""
CAPTIONS: Final = 5_000
"""Captions that an image is compared with where there are more pairs."""

_WORDS: Final = {
    CLASS: "Class",
    AGREEMENT: "Run agreement",
    RANK: "Rank of caption",
    COSINE: "Cosine of pair",
}

BETTER_IN_B: Final = {"image_rank_change": -1, "text_rank_change": -1, "margin_change": 1}
"""Changes that have a sign, and the sign that speaks for B."""
CHANGED: Final = (*BETTER_IN_B, "overlap", "residual", "verdict")
"""Measures that color a map; the others are of one run alone."""

_VERDICTS: Final = ("same prediction", "different prediction")
_MOST_SHOWN: Final = 0.98
"""Share of the pairs that lie within the ends of a scale with a sign: a few large changes would hide all others."""


class PairNumbers(Struct, frozen=True):
    """A run's numbers of each pair."""

    cosine: Float[np.ndarray, " n"]  # Of image and text.
    rank: Int[np.ndarray, " n"]  # Of the right caption among `among` distinct captions for the image.
    among: int  # Number of captions; fewer than `captions` if they are a sample, drawn at random.
    captions: int  # Distinct captions of the pairs.

    @property
    def sampled(self) -> bool:
        """Whether the ranks are among a sample of the captions."""
        return self.among < self.captions


class ColoredMap(Struct, frozen=True):
    """The data for coloring: number of pairs, columns, and the run's numbers if known."""

    n: int
    columns: Mapping[str, MetadataColumn]
    numbers: PairNumbers | None = None


def color_notes(colors: ColoredPoints, detail: str = "") -> list[str]:
    """Return the sentences, without their dots, on what points are colored by; none for modalities without a note."""
    by, note = words(colors.by), colors.note
    colored = [f"Colored by {by[0].lower()}{by[1:]}{detail}"] if colors.by != MODALITY else []
    return [*colored, *([note[0].upper() + note[1:]] if note else [])]


def compares(colors: ColoredPoints) -> bool:
    """Return whether the colors tell A from B."""
    return colors.by == AGREEMENT or colors.by in CHANGED


def words(by: str) -> str:
    """Return the name of a coloring: `subject_color` becomes `Subject color`."""
    if by in CHANGED:
        return changed_words(by)
    return _WORDS.get(by, by.replace("_", " ").capitalize())


def pair_numbers(snapshot: Snapshot, progress: Progress = silent) -> PairNumbers | None:
    """Return cosine and rank of every pair; above 50,000 pairs the rank is among a sample of captions.

    None without both modalities.
    """
    if snapshot.image is None or snapshot.text is None or len(snapshot.image) != len(snapshot.text):
        return None
    n = len(snapshot.image)
    texts = matching_of(snapshot).texts
    cosine = matched_cosines(snapshot.image, snapshot.text)
    if n <= MOST_RANKED:
        return PairNumbers(
            cosine, ranks(snapshot.image, snapshot.text, texts, progress=progress), len(texts), len(texts)
        )
    sample = at_most(texts.rows, CAPTIONS)
    rank = ranks_among(snapshot.image, snapshot.text, sample, texts, progress=progress)
    return PairNumbers(cosine, rank, len(sample), len(texts))


def numbers_of_pair(snapshot: Snapshot, row: int, most: int = CAPTIONS) -> PairNumbers | None:
    """Return cosine and rank of one pair, ranked among `most` captions drawn at random where there are more.

    None without both modalities.
    """
    if snapshot.image is None or snapshot.text is None or not 0 <= row < min(len(snapshot.image), len(snapshot.text)):
        return None
    texts = matching_of(snapshot).texts
    # The one image's question alone: its own captions, and the sampled ones that are not.
    matching = texts.rows[texts.cells(texts.question[row : row + 1])[1]]
    others = np.setdiff1d(at_most(texts.rows, most), matching)
    image, text = snapshot.image[row : row + 1], np.concatenate([snapshot.text[matching], snapshot.text[others]])
    groups = answers(np.repeat([0, 1], [len(matching), len(others)]), np.arange(len(text)))
    rank = ranks_among(image, text, np.arange(len(text)), groups)
    return PairNumbers(matched_cosines(image, snapshot.text[row : row + 1]), rank, len(text), len(texts))


def pair_colors(by: str, maps: Sequence[ColoredMap]) -> list[ColoredPoints]:
    """Return the colors of each map's pairs; missing or pending values are -1 or NaN and drawn gray."""
    if by == MODALITY:
        return [ColoredPoints(by) for _ in maps]
    if by == AGREEMENT:
        return _agreement(maps)
    if by == RANK:
        return [_rank(each_map) for each_map in maps]
    if by == COSINE:
        return [_cosine(each_map) for each_map in maps]
    if by in CHANGED:
        return [changed_colors(by, _changes_of(each_map, by)) for each_map in maps]
    none = (MetadataColumn((NO_VALUE,), np.zeros(each_map.n, np.int64)) for each_map in maps)
    columns = [each_map.columns.get(by) or empty for each_map, empty in zip(maps, none, strict=True)]
    if all(column.numbers is not None for column in columns):
        return _on_one_scale(by, [column.numbers for column in columns if column.numbers is not None])
    classes = [column if column.place is not None else _as_classes(column) for column in columns]
    # What has no class comes last, of each data set and of all.
    data_sets = [tuple(sorted(set(column.names) - {NO_VALUE})) for column in classes]
    every = [name for classes in dict.fromkeys(data_sets) for name in classes]
    if len(set(every)) < len(every):  # parts of one data set
        every = sorted(set(every))
        data_sets = [tuple(every)]
    missing = (NO_VALUE,) if any(NO_VALUE in column.names for column in classes) else ()
    where = {name: i for i, name in enumerate((*every, *missing))}
    return [ColoredPoints(by, tuple(where), _moved(column, where), data_sets=tuple(data_sets)) for column in classes]


def _changes_of(colored: ColoredMap, by: str) -> Float[np.ndarray, " n"]:
    prepared = colored.columns.get(by)
    return np.full(colored.n, np.nan) if prepared is None or prepared.numbers is None else prepared.numbers


def _agreement(maps: Sequence[ColoredMap]) -> list[ColoredPoints]:
    numbers = [colored.numbers for colored in maps]
    ranked = [ranks for ranks in numbers if ranks is not None]
    if len(maps) != 2 or len(ranked) != 2 or maps[0].n != maps[1].n:
        return [ColoredPoints(AGREEMENT, AGREEMENTS, np.full(colored.n, -1)) for colored in maps]
    groups = agreement(ranked[0].rank, ranked[1].rank)
    return [ColoredPoints(AGREEMENT, AGREEMENTS, groups, note=_sampled(ranked[0])) for _ in maps]


def _rank(colored: ColoredMap) -> ColoredPoints:
    groups = np.full(colored.n, -1) if colored.numbers is None else rank_groups(colored.numbers.rank)
    note = "" if colored.numbers is None else _sampled(colored.numbers)
    return ColoredPoints(RANK, rank_names(), groups, ordered=True, note=note)


def _cosine(colored: ColoredMap) -> ColoredPoints:
    numbers = np.full(colored.n, np.nan) if colored.numbers is None else np.asarray(colored.numbers.cosine, np.float64)
    note = "cosines are not comparable across runs"
    return ColoredPoints(COSINE, numbers=numbers, ends=_ends([numbers]), own_scale=True, note=note)


def _sampled(numbers: PairNumbers) -> str:
    return f"ranks among {numbers.among:,} captions drawn at random" if numbers.sampled else ""


def _on_one_scale(by: str, numbers: Sequence[np.ndarray]) -> list[ColoredPoints]:
    ends = _ends(numbers)
    return [ColoredPoints(by, numbers=values, ends=ends) for values in numbers]


def _ends(numbers: Sequence[np.ndarray]) -> tuple[float, float]:
    finite = [values[np.isfinite(values)] for values in numbers]
    finite = [values for values in finite if len(values)]
    if not finite:
        return 0.0, 0.0
    return min(float(values.min()) for values in finite), max(float(values.max()) for values in finite)


def _as_classes(column: MetadataColumn) -> MetadataColumn:
    """Convert numbers to classes to match another map's classes."""
    words_of = [NO_VALUE if np.isnan(v) else f"{v:g}" for v in column.numbers.tolist()]  # type: ignore[union-attr]
    names, codes = np.unique(np.asarray(words_of, str), return_inverse=True)
    return MetadataColumn(tuple(map(str, names)), codes.reshape(-1))


def _moved(column: MetadataColumn, where: Mapping[str, int]) -> Int[np.ndarray, " n"]:
    codes = np.array([where[name] for name in column.names] or [0], np.int64)
    return codes[column.place]


def changed_columns(compared: Changes) -> dict[str, MetadataColumn]:
    """Return measure -> its value for every pair of A's snapshot, NaN if B lacks the pair or it was not compared."""
    values = map_values(compared)
    return {key: MetadataColumn(numbers=values[key]) for key in CHANGED if key in values}


def changed_words(by: str) -> str:
    """Return the name of a measure."""
    return MEASURES[by].words


def changed_colors(by: str, values: Float[np.ndarray, " n"]) -> ColoredPoints:
    """Return a measure's colors: verdicts as two classes, changes around zero, others from low to high."""
    finite = values[np.isfinite(values)]
    missing = len(values) - len(finite)
    left = f"{missing:,} pairs not compared" if missing else ""
    if by == "verdict":
        groups = np.where(np.isfinite(values), np.where(values > 0.5, 0, 1), -1)
        return ColoredPoints(by, _VERDICTS, groups.astype(np.int64), note=left)
    if by not in BETTER_IN_B:
        ends = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
        return ColoredPoints(by, numbers=values, ends=ends, note=left)
    far = float(np.quantile(np.abs(finite), _MOST_SHOWN)) if len(finite) else 0.0
    far = far or (float(np.abs(finite).max()) if len(finite) else 0.0) or 1.0
    said = "; ".join(
        filter(None, ("the color of A is better in A, that of B in B", f"beyond ±{far:,.3g} the color stays", left))
    )
    return ColoredPoints(by, numbers=values, ends=(-far, far), note=said, better=BETTER_IN_B[by])
