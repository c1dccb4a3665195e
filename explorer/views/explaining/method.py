"""The help text of the Explaining away view."""

METHOD = """\
Spectrum: eigenvalues of the covariance of the unit embeddings, their mean taken off. Effective directions: how many \
hold 99 % of the variance (the CLOOB blog's effective eigenvalues). Effective rank: exp of the entropy of the spectrum \
(Roy & Vetterli, 2007). Dimensional collapse (Jing et al., 2022) is warned of where 99 % of the variance lie in fewer \
than a tenth of the directions there could be; that bound is ours.

Saturation: InfoNCE keeps the match in its own denominator, so its gradient on an anchor is 1 - p times that of \
InfoLOOB, with p the softmax probability of the match (Fuerst et al., CLOOB, 2022). Both are computed of the \
run's first training batch, embedded with each snapshot, or of as large batches of held-out pairs, at the run's own \
1/tau of that step; where the run retrieves, of its retrievals. Pull: tau times the gradient's length.

Batch: the logits of such a batch, and the share of each sample in the gradient on its anchor, under both bounds. A \
negative is likely false where it has the anchor's caption, or where the two texts or the two images lie at a cosine \
of at least 0.9 in that run.

Attributes: a linear probe (multinomial logistic regression, L-BFGS, weight decay 0.001, rows scaled to mean 0 and \
deviation 1) is fitted on 70 % of the pairs and tested on the rest. Explaining away: an objective that is satisfied by \
some attributes stops learning the others, so they cannot be read off its embedding. 'From the others' is a probe on \
the other attributes of the pair alone: with co-occurrence the held-out renderings are correlated like the training \
pairs, and only what lies above that line is read off the embedding. Independent Scenes are 1,024 pairs drawn with a \
seed of their own and without co-occurrence, the same for every run: on them runs trained with and without the \
correlation are compared on equal terms. The ablation trains InfoNCE, InfoNCE + Hopfield, \
InfoLOOB and CLOOB alike but for the objective, each in its default settings; one seed each, so small differences \
say nothing.

Caveats: a probe finds what a linear reading can find, not what the objective uses. The training batch is embedded \
whole, without the crops that the step saw; runs from before it was kept have held-out pairs only."""
