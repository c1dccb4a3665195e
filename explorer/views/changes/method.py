"""The view's help text."""

from __future__ import annotations

METHOD = """\
All numbers are computed in the embedding spaces, not from the 2-D maps, over the pairs that both snapshots contain. \
Every pair is compared with every other.

Caption rank: rank of the correct caption among all distinct captions, with the image as the query; image rank: rank \
of the correct image among distinct images. Ties count against the correct item. Ranks are comparable across runs; \
cosines are not.

Margin: cosine of the correct caption minus that of the nearest incorrect one, in standard deviations of this \
image's cosines with incorrect captions, so it does not depend on the scale of an objective's cosines.

Shared neighbors: Jaccard overlap of the k nearest neighbors in A and in B (members of both over members of either).

Procrustes residual: remaining distance between a pair's positions in A and B after the best rotation, reflection and \
scaling of B (Schönemann 1966), both centered and scaled to root-mean-square length 1.

Same prediction: whether both assign the image to the same class. A class is represented by the mean embedding of \
its captions in this snapshot, or by a prompt suite that each run's own model embeds; the list above selects which.

Mispairs: the lowest-ranked pairs of each run (geometric mean of both ranks); pictures are counted, each with all of \
its captions once. Low-ranked in both suggests a mislabel, in one a difference between the models. "By chance" is how \
many pictures would be low-ranked in both if the runs erred independently.

Representation similarity: linear CKA (Kornblith et al. 2019, arXiv 1905.00414), RSA (Spearman correlation of all \
pairwise cosines, Kriegeskorte et al. 2008), and the mean overlap of neighbors. CKA is close to 1 for any two spaces \
when there are fewer pairs than dimensions, so check n."""

ONE_STEP = "There is only one snapshot. Choose run B in the bar above, or wait for the next evaluation."
