"""Units of data: which rows are one picture, one caption, or linked, because a pair is no independent item.

Flickr and COCO have five captions a picture, and a class folder has one caption for a hundred pictures. Whoever splits,
draws, counts neighbors or prints n by pairs takes copies for evidence: a probe is tested on pictures that it was fitted
on, an interval is too narrow, an item's nearest neighbor is itself. `Units` answers all of these for a snapshot
(`trainer.charts.matching.units_of`) and for pairs in training (`units_of_numbers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from trainer.analysis.distinct import Matching, in_order, matching
from trainer.analysis.sampling import at_most

Unit = Literal["picture", "caption", "pair", "group"]
"""What counts as one; a `group` is a linked component: pictures and captions reached from each other by pairs."""
Equality = Literal["pixels", "paths", "vectors", "none"]
"""How it is known that two rows show one picture; `none`: it is not known, and every row counts as a picture."""

EQUALITY_WORDS: Final[dict[Equality, str]] = {
    "pixels": "equal pixels",
    "paths": "equal paths",
    "vectors": "equal embeddings",
    "none": "not known: each row counts as one",
}
UNIT_OF: Final[dict[str, Unit]] = {"image": "picture", "text": "caption"}
"""Modality -> what counts as one of it."""
GROUPS: Final = 256
"""Most groups that a bootstrap draws from."""
_FIRST_NUMBERS: Final = 16
"""Of a row are compared with those of others before all are."""


@dataclass(frozen=True)
class Units:
    """Which of n pairs are equal or linked; numbers of units count from 0 in the order in which they first occur.

    Made by `units_of(snapshot)` or `units_of_numbers`. Where every row has a picture and a caption of its own, all
    methods give what the same draw over rows gives.

    * Rows that stand for units: `rows("picture")`, `rows("caption")`, `rows("pair")`; how many: `count(unit)`. What is
      measured of images alone is measured of `rows(UNIT_OF["image"])`, of texts alone of `rows(UNIT_OF["text"])`.
    * Right answers: `right(images, texts)` for a block of cells (the mask of a batch), `matching` for rankings.
    * `split(seed, share, unit)` draws whole units for training and test; `sample(most, unit)` whole units.
    * `bootstrap_groups(rows, unit)` numbers what a bootstrap of the questions `rows` has to draw as one.
    """

    picture: Int[np.ndarray, " n"]  # Of each row, the number of its picture.
    caption: Int[np.ndarray, " n"]  # Of each row, the number of its caption.
    equality: Equality = "pixels"  # How it is known that pictures are equal.

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.picture)

    @cached_property
    def matching(self) -> Matching:
        """The right answers in both query directions: the edges between pictures and captions."""
        return matching(self.caption, self.picture)

    @cached_property
    def pair(self) -> Int[np.ndarray, " n"]:
        """Of each row, the number of its edge: rows of the same picture and caption are one pair."""
        return in_order(self._edge(self.picture, self.caption))[0]

    @cached_property
    def group(self) -> Int[np.ndarray, " n"]:
        """Of each row, the number of its linked component. Captions in common usage may link nearly everything."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        pictures = self.count("picture")
        size = pictures + self.count("caption")
        edges = coo_array((np.ones(len(self), np.int8), (self.picture, pictures + self.caption)), shape=(size, size))
        return in_order(connected_components(edges, directed=False)[1][self.picture])[0]

    def of(self, unit: Unit) -> Int[np.ndarray, " n"]:
        """Return the number of the unit of each row."""
        numbers: Int[np.ndarray, " n"] = getattr(self, unit)
        return numbers

    def count(self, unit: Unit) -> int:
        """Return how many different ones there are."""
        return int(self.of(unit).max(initial=-1)) + 1

    def rows(self, unit: Unit, most: int | None = None) -> Int[np.ndarray, " u"]:
        """Return the first row of each, or of `most` drawn at random, the same each time; ascending."""
        first = in_order(self.of(unit))[1]
        return first if most is None else at_most(first, most)

    def whole(self, unit: Unit, most: int) -> Int[np.ndarray, " k"]:
        """Return every row of `most` of them, which are drawn as `rows` draws them; ascending."""
        return np.flatnonzero(np.isin(self.of(unit), self.of(unit)[self.rows(unit, most)]))

    def taken(self, rows: Int[np.ndarray, " k"]) -> Units:
        """Return the units of some rows alone: right answers are those among these rows."""
        return Units(in_order(self.picture[rows])[0], in_order(self.caption[rows])[0], self.equality)

    def right(self, images: Int[np.ndarray, " a"], texts: Int[np.ndarray, " b"]) -> Bool[np.ndarray, "a b"]:
        """Return whether the caption of row `texts[j]` is a right answer to the picture of row `images[i]`.

        It is where some pair has both. Links through third pairs make nothing right.
        """
        return self._is_edge(self._edge(self.picture[images][:, None], self.caption[texts][None, :]))

    def right_pairs(self, images: Int[np.ndarray, " m"], texts: Int[np.ndarray, " m"]) -> Bool[np.ndarray, " m"]:
        """Return whether the caption of row `texts[i]` is a right answer to the picture of row `images[i]`."""
        return self._is_edge(self._edge(self.picture[images], self.caption[texts]))

    def split(
        self, seed: int, share: float, unit: Unit = "group"
    ) -> tuple[Int[np.ndarray, " t"], Int[np.ndarray, " h"]]:
        """Return rows to learn from and rows to test on, ascending; no unit has rows in both.

        Units are drawn at random until the test has `share` of the pictures (of the captions where these are split,
        one at least); a linked component that would exceed that is learned from. Each of pictures and captions counts
        once, so copies of rows change nothing about what is drawn.

        Args:
            share: Of the test, from 0 to 1.
            unit: What stays together: `picture` for what is measured of images, `caption` of texts, `group` of both.

        Raises:
            ValueError: No unit is small enough: all rows are linked with each other.
        """
        numbers = self.of(unit)
        counted = self.rows("caption" if unit == "caption" else "pair" if unit == "pair" else "picture")
        sizes = np.bincount(numbers[counted], minlength=self.count(unit))
        room = max(1, round(share * len(counted)))
        held = np.zeros(len(sizes), bool)
        for number in np.random.default_rng(seed).permutation(len(sizes)).tolist():
            if sizes[number] <= room:
                held[number] = True
                room -= int(sizes[number])
            if not room:
                break
        if not held.any() or held.all():
            raise ValueError("too few independent items to hold some out")
        tested = held[numbers]
        return np.flatnonzero(~tested), np.flatnonzero(tested)

    def sample(self, most: int, unit: Unit) -> Int[np.ndarray, " k"]:
        """Return all rows of all units, or of `most` units drawn at random; ascending, the same each time."""
        count = self.count(unit)
        if count <= most:
            return np.arange(len(self))
        return np.flatnonzero(np.isin(self.of(unit), at_most(count, most)))

    def alike(self) -> Int[np.ndarray, " k"]:
        """Return rows with neither a picture nor a caption twice, on which images are compared with texts.

        Where neither repeats these are all rows.
        """
        pictures = self.rows("picture")
        return pictures[in_order(self.caption[pictures])[1]]

    def order(self, seed: int, unit: Unit = "pair") -> Int[np.ndarray, " u"]:
        """Return one row of each unit in random order, as batches are drawn."""
        return shuffled(self.rows(unit), seed)

    def bootstrap_groups(
        self, rows: Int[np.ndarray, " m"] | None = None, unit: Unit = "picture", *, seed: int = 0
    ) -> Int[np.ndarray, " m"]:
        """Return the group of each of the questions `rows` (None: all) in a bootstrap: `GROUPS` at most.

        Rows of one unit are in one group. More units than groups are dealt out at random in groups of equal size.
        """
        numbers = in_order(self.of(unit) if rows is None else self.of(unit)[rows])[0]
        return bootstrap_groups(int(numbers.max(initial=-1)) + 1, seed)[numbers]

    @property
    def counted(self) -> str:
        """What a page says where rows repeat; empty where every row is a pair of its own."""
        return "" if self.count("picture") == self.count("caption") == len(self) else self.words()

    def words(self) -> str:
        """Return `347 pairs: 181 pictures (equal pixels), 251 captions`; `347 pairs` where all differ."""
        pictures, captions, pairs = self.count("picture"), self.count("caption"), self.count("pair")
        if pictures == captions == pairs == len(self):
            return f"{pairs:,} pairs"
        return f"{pairs:,} pairs: {self.picture_words()}, {captions:,} captions"

    def picture_words(self) -> str:
        """Return how many pictures there are, and how that is known where rows share one."""
        count = self.count("picture")
        basis = "" if count == len(self) and self.equality != "none" else f" ({EQUALITY_WORDS[self.equality]})"
        return f"{count:,} pictures{basis}"

    def _is_edge(self, cells: Int[np.ndarray, "*c"]) -> Bool[np.ndarray, "*c"]:
        if not cells.size:
            return np.zeros(cells.shape, bool)
        position = np.searchsorted(self._edges, cells).clip(max=len(self._edges) - 1)
        return self._edges[position] == cells

    @cached_property
    def _edges(self) -> Int[np.ndarray, " e"]:
        return np.unique(self._edge(self.picture, self.caption))

    def _edge(self, picture: Int[np.ndarray, "*a"], caption: Int[np.ndarray, "*b"]) -> Int[np.ndarray, "*c"]:
        return picture * self.count("caption") + caption


def units_of_numbers(
    picture: Int[np.ndarray, " n"], caption: Int[np.ndarray, " n"], equality: Equality = "pixels"
) -> Units:
    """Return the units of n pairs from integers that are equal exactly where pictures and captions are."""
    return Units(in_order(np.asarray(picture))[0], in_order(np.asarray(caption))[0], equality)


def bootstrap_groups(units: int, seed: int = 0) -> Int[np.ndarray, " units"]:
    """Return the group of each unit of that number: its own up to `GROUPS`, else random ones of equal size."""
    groups = np.arange(units) % GROUPS
    return groups if units <= GROUPS else np.random.default_rng(seed).permutation(groups)


def shuffled(units: Int[np.ndarray, " u"], seed: int) -> Int[np.ndarray, " u"]:
    """Return rows that stand for one unit each in random order."""
    return units[np.random.default_rng(seed).permutation(len(units))]


def equal_vectors(
    vectors: Float[np.ndarray, "m d"], rows: Int[np.ndarray, " n"] | None = None
) -> Int[np.ndarray, " n"]:
    """Return integers that are equal where these rows (None: all) are, bit by bit, but for the sign of zero.

    By a random sum of their bits modulo 2^64: two of a million different rows share one with a chance of 3e-8. Only
    rows that share that of their first numbers are read whole.
    """
    rows = np.arange(len(vectors)) if rows is None else rows
    sums = _bit_sums(vectors[:, :_FIRST_NUMBERS], rows)
    ascending = np.sort(sums)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    if not len(repeated):
        return np.arange(len(rows))
    shared = np.flatnonzero(np.isin(sums, repeated))
    sums[shared] = _bit_sums(vectors, rows[shared])
    return in_order(sums)[0]


def _bit_sums(vectors: Float[np.ndarray, "m d"], rows: Int[np.ndarray, " n"]) -> np.ndarray:
    wide, bits = (np.float32, np.uint32) if vectors.dtype.itemsize <= 4 else (np.float64, np.uint64)
    factors = np.random.default_rng(0).integers(0, 2**64, vectors.shape[1], np.uint64, endpoint=False) | np.uint64(1)
    sums = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), 4096):
        block = np.ascontiguousarray(vectors[rows[start : start + 4096]], wide)
        block = np.where(block == 0, np.zeros(1, wide), block)  # -0 is 0
        # Bits of small numbers are multiples of a power of two: mixed, so that their sums use all 64 bits.
        mixed = block.view(bits).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        sums[start : start + 4096] = (mixed * factors).sum(axis=1, dtype=np.uint64)
    return sums


def pictures_by_path(
    paths: Int[np.ndarray, " n"],
    vectors: Float[np.ndarray, "m d"] | None,
    rows: Int[np.ndarray, " n"] | None = None,
) -> Int[np.ndarray, " n"]:
    """Return picture numbers of these rows (None: all) of the vectors, whose paths have these numbers.

    A path names a picture as long as its embeddings agree, to a distance of 0.01 (bfloat16 in other batches): a table
    of many pictures has one path, too. Rows of one path that differ are one picture where their embeddings are equal.
    """
    numbers, first = in_order(np.asarray(paths))
    if vectors is None or len(first) == len(numbers):
        return numbers
    rows = np.arange(len(numbers)) if rows is None else rows
    leader = first[numbers]
    distance = np.zeros(len(numbers))
    shared = np.flatnonzero(leader != np.arange(len(numbers)))
    for start in range(0, len(shared), 4096):
        part = shared[start : start + 4096]
        distance[part] = np.linalg.norm(vectors[rows[part]].astype(np.float32) - vectors[rows[leader[part]]], axis=1)
    apart = np.flatnonzero(~(distance <= 1e-2))
    if not len(apart):
        return numbers
    other = np.zeros(len(numbers), np.int64)
    other[apart] = 1 + equal_vectors(vectors, rows[apart])
    return in_order(numbers * (int(other.max()) + 1) + other)[0]
