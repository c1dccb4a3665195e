"""The view's help text."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
Mispairs: the margin of a pair is its cosine minus the mean unmatched cosine of the run, in standard deviations of \
the run's unmatched cosines. A pair is suspected where its margin is below median − 7 (median − lower quartile) of \
the run's own margins, and neither its caption nor its image ranks first; with two runs, where both say so. A run \
that learned its pairs by heart sees none of their mistakes, so each check plants mispairs in memory: captions of 3 % \
of the pairs (50 at least, a tenth at most) are exchanged and searched for by the same rule. A learned pair's planted \
caption is raised by what training gave the pairs, the median margin of training pairs less that of held-out ones; \
where fewer are detected among held-out pairs, that share counts. \
Where the 95 % interval of the detected share does not lie above 50 %, the run cannot tell, and finding nothing says \
nothing. Training pairs are judged by the run that detects the most planted ones: run A, or one of the three newest \
others of the same picture size that did not learn them. Captions that are nearly right are harder to find than \
planted ones.

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
