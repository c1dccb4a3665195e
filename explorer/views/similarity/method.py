"""The help text of the Similarity view."""

from trainer.charts import axes

METHOD = f"""\
Matched: the cosine of every image with its own text. Unmatched: the cosines of every image with the k most similar \
distinct texts that are not its own; a caption that many pairs share is one text, and every caption of the same \
picture is its own. These are the pairs that retrieval confuses, not average ones.

AUC: the chance that a matched cosine exceeds an unmatched one (Mann-Whitney). d′: difference of the means over the \
root of the mean variance. Overlap: area that both normalized histograms share. R@1: share of images whose own text is \
the most similar of all distinct ones.

Shuffled: the same statistics after each image is given the text of another, the level of an uninformative model. \
Against sampled or all unmatched pairs AUC is about .5 then. Against the k most similar ones, each a maximum over all \
texts, it is near 0, d′ below 0, overlap small and KS near 1; all four depend on n and k. So splits of unlike n do not \
compare, and a small overlap or a large KS is good only where AUC is above .5: an untrained run has both.

Cosines are not comparable across runs, because an objective may stretch or compress them: compare runs by AUC, d′ \
and R@1. Differences of raw cosines are therefore not shown.

Each histogram is drawn as a share of its own pairs; k times as many unmatched as matched pairs are counted.

Intervals of AUC and d′: images are drawn again with replacement, 400 times, with all their cosines (grouped \
bootstrap); 95 of 100 draws lie inside. Overlap and KS have none: chance alone moves them one way, and no quick \
interval holds their true value; of few pairs an overlap is too small. KS: largest distance of the two cumulative \
distributions; no p-value, since with n large any \
difference is significant. Density: Gaussian kernel, Silverman's width. “All” counts every unmatched cosine in 4,000 \
bins between the smallest and the largest one; values per class are always against the k most similar texts.

Matrix: rows are images, columns are texts, ordered by class (or clusters) with optimal leaf ordering, so similar ones \
are adjacent. From afar a cell is the mean of a block, exactly: it is the product of the mean vectors. Each run has \
its own colors.

Words: the caption is embedded again without each word. The contribution of a word is the drop in cosine; the rank is \
the place of the pair's image among all images of the split. A shorter sentence is also less usual, so some loss is \
not meaning.

Words and axes are embedded by the checkpoint of the snapshot's own step: any other step would place them elsewhere. \
Where a run keeps it no longer, there are none.

Axes: {axes.METHOD}"""
