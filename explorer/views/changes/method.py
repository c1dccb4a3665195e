"""The view's help text."""

from __future__ import annotations

METHOD = """\
Everything here is computed in the embedding spaces, never on the map's picture, from the pairs that both snapshots \
hold. All pairs are compared with all.

Caption rank: place of the right caption among all distinct captions, asked by the image; image rank: the other way, \
among distinct pictures. An equally near wrong one goes before. Ranks of two runs may be compared, cosines may not.

Margin: cosine of the right caption minus that of the nearest wrong one, in standard deviations of this image's \
cosines to wrong captions; so it does not depend on how far an objective spreads its cosines.

Shared neighbors: Jaccard overlap of the k nearest neighbors in A and in B (members of both over members of either).

Procrustes residual: distance left between a pair's two places after B is laid on A by the best rotation, reflection \
and scale (Schönemann 1966), both centered and of root mean square length 1.

Same verdict: whether both take the image for the same class. A class is stood for by the mean embedding of its own \
captions in this snapshot, or by a prompt suite that each run's own model embeds: the line above says which, and the \
list next to it changes it.

Mispairs: the pairs worst ranked in each run (geometric mean of both ranks). Bad in both hints at wrong data, bad in \
one at a difference of the models. "By chance" is how many would be bad in both if the runs erred independently.

Whole runs: linear CKA (Kornblith et al. 2019, arXiv 1905.00414), RSA (Spearman correlation of all pairwise cosines, \
Kriegeskorte et al. 2008), and the mean overlap of neighbors. CKA is near 1 for anything when there are fewer pairs \
than dimensions, so mind n."""

NO_RUN = "Choose run A in the bar above, and run B to compare. Or compare two steps of one run."
ONE_STEP = "There is one snapshot only. Choose run B in the bar above, or wait for the next evaluation."
