"""The view's help text."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
Mispairs: the margin of a pair is its cosine minus the mean unmatched cosine of the run, in standard deviations of \
the run's unmatched cosines. A pair is suspected where its margin is below median − 7 (median − lower quartile) of \
the run's own margins, and neither its caption nor its image ranks first; with two runs, where both say so. On 8 \
runs of Scenes at most 0.7 % of clean pairs are suspected, and 94 to 100 % of planted captions of other pairs are \
found. Captions that are nearly right are harder to find, and real data were not measured.

Near-duplicates and leaks: pictures whose perceptual hashes differ in at most 4 of 64 signs and whose small \
versions are close, or whose embeddings by run A are nearer than 5 % of the typical distance to the nearest \
picture. A leak is a training picture that is held out too.

Outliers: pictures whose mean distance to their 10 nearest is above median + 8 (upper quartile − median).

Flagged pairs are left out of cleaned lists; ignored ones are fine as they are. Decisions are kept with the data \
set, in the workspace. A retrained run is compared with its original on the same held-out pairs: R@1 both ways, \
Newcombe's interval, exact McNemar test, Holm over both directions."""

NO_RUN: Final = "Choose run A in the bar above. Its model searches its training data for problems."
NOT_CHECKED: Final = (
    "The model of run A embeds the training and the held-out pairs and searches for wrong captions, duplicate images "
    "and outliers. It takes about a minute per ten thousand pairs, and continues if you leave this view."
)
