"""What the help page of an objective says: what is minimized as a formula, the paper, and a caveat."""

from __future__ import annotations

import inspect
from typing import Any, Final

_SYMBOLS: Final = "x, y: unit embeddings of image and text; S_ij = x_i · y_j / τ; n: pairs of a batch."
_VIEWS: Final = "u, v: unit projections of two views of an image; n: images of a batch."
_CLASSES: Final = "d: distance of two unit embeddings; a, p, n: anchor, positive of its class, negative of another."
_NO_RECALL: Final = "It has no text tower, so its runs are measured by nearest neighbors and probes, not by recall."
_RETRIEVED: Final = "hop(s, M) = normalize(softmax(β s · Mᵀ) M)"

HELP: Final[dict[str, tuple[str, str, str]]] = {
    "clip": (
        _SYMBOLS,
        "½ mean_i (ln Σ_j exp S_ij − S_ii) + ½ mean_i (ln Σ_j exp S_ji − S_ii)",
        "Pairs of a batch with the same meaning are wrong negatives of each other. The match stands in its own "
        "denominator, so gradients vanish as it is found, and ln n bounds what the loss can tell.",
    ),
    "cloob": (
        f"{_SYMBOLS} {_RETRIEVED}; X, Y: all images, all texts.",
        "τ · InfoLOOB(hop(x, X), hop(y, X)) + τ · InfoLOOB(hop(y, Y), hop(x, Y)), with "
        "InfoLOOB(a, b) = mean_i (ln Σ_{j≠i} exp(a_i · b_j / τ) − a_i · b_i / τ). "
        "With a share s: s times this, and 1 − s times InfoLOOB.",
        "The loss is often negative, and τ is fixed: a learned one always falls to its clamp. The share s is not of "
        "the paper. As published, small runs settle in a few directions: in studies of emoji pairs and of Scenes "
        "the first hit was right 12 and 23 points less often than CLIP's after as many steps. β suits one batch size.",
    ),
    "hopfield_infonce": (
        f"{_SYMBOLS} {_RETRIEVED}; X, Y: all images, all texts.",
        "½ InfoNCE(hop(x, X), hop(y, X)) + ½ InfoNCE(hop(y, Y), hop(x, Y)), with "
        "InfoNCE(a, b) = mean_i (ln Σ_j exp(a_i · b_j / τ) − a_i · b_i / τ)",
        "An ablation, not a method that the paper recommends; it needs a longer training than CLIP.",
    ),
    "infoloob": (
        _SYMBOLS,
        "τ mean_i (ln Σ_{j≠i} exp S_ij + ln Σ_{j≠i} exp S_ji − 2 S_ii)",
        "Unbounded from below as τ falls, so τ is fixed, and the loss may be negative. An ablation of the paper.",
    ),
    "convirt": (
        f"{_SYMBOLS} λ: image weight.",
        "λ mean_i (ln Σ_j exp S_ij − S_ii) + (1 − λ) mean_i (ln Σ_j exp S_ji − S_ii)",
        "No encoder is pretrained, unlike the paper's. Mirrored or turned images contradict captions that say where "
        "something is. Nonlinear projections are a field of the model.",
    ),
    "siglip": (
        "x, y: unit embeddings; z_ij = 1 for a match, −1 for all others; t, b: learned scale and bias.",
        "−1/n Σ_ij ln σ(z_ij (t x_i · y_j + b))",
        "A bias that does not suit the batch makes the first steps useless: the paper's −10 is for some 22,000 pairs.",
    ),
    "dhn_nce": (
        f"{_SYMBOLS} β: hardness, one for each direction.",
        "mean_i (−S_ii + ln(n − 1) + ln Σ_{j≠i} exp((1 + β) S_ij) − ln Σ_{j≠i} exp(β S_ij)), and the same of S_ji",
        "The closed form of the paper's sum, not its derivation (not a number for aligned pairs) nor its code (which "
        "attracts the hardest negatives). Hard negatives of real captions are often false ones.",
    ),
    "simclr": (
        f"{_VIEWS} Over all 2n views as u, k ≠ u.",
        "NT-Xent: mean (ln Σ_k exp(u · k / τ) − u · v / τ). The field Loss has NT-Logistic and a margin triplet, "
        "too, the field Negatives semi-hard ones for both.",
        "What the views change is forgotten: strong color jitter costs the color. " + _NO_RECALL,
    ),
    "dcl": (
        f"{_VIEWS} Over all 2n views as u; k: the views of other images.",
        "mean (ln Σ_k exp(u · k / τ) − w u · v / τ); DCL: w = 1; "
        "DCLW: w_i = 2 − exp(u_i · v_i / σ) / mean_j exp(u_j · v_j / σ)",
        "The loss may be negative. Between an image and its text the same bound is InfoLOOB. " + _NO_RECALL,
    ),
    "simsiam": (
        "p: predictions, z: projections of views a and b; no gradient follows z.",
        "−½ mean cos(p_a, z_b) − ½ mean cos(p_b, z_a)",
        "Without negatives it may collapse: after short trainings it did not beat an untrained tower on color. "
        + _NO_RECALL,
    ),
    "byol": (
        "p: predictions of the network, z: projections by its moving average, of views a and b.",
        "mean (2 − 2 cos(p_a, z_b)) + mean (2 − 2 cos(p_b, z_a))",
        "The moving average begins as random as the network, so short trainings lag behind. " + _NO_RECALL,
    ),
    "moco": (
        "q: projection of a view, k: of the other view by the momentum encoder, Q: queue of earlier keys.",
        "mean_i (ln(exp(q_i · k_i / τ) + Σ_{m∈Q} exp(q_i · m / τ)) − q_i · k_i / τ)",
        "Keys of the queue are as old as it is long. Batch norms can betray the key, hence the key groups; with a "
        "ResNet it cannot be divided over several ranks. " + _NO_RECALL,
    ),
    "swav": (
        "z: projections of views a and b, C: prototypes, q = Sinkhorn(z Cᵀ / ε): assignments, balanced over the batch.",
        "−½ mean Σ_k q_k(z_a) ln softmax_k(z_b Cᵀ / τ) − ½ mean Σ_k q_k(z_b) ln softmax_k(z_a Cᵀ / τ)",
        "The small crops of the paper are left out. A batch needs at least as many images as there are prototypes. "
        + _NO_RECALL,
    ),
    "pcl": (
        "q, k, Q as for MoCo; c: the centers of each of M clusterings, φ: concentration of a cluster.",
        "InfoNCE(q, k, Q) + 1/M Σ_m mean_i (ln Σ_j exp(q_i · c_j / φ_j) − q_i · c_s / φ_s), s the cluster of i",
        "All other prototypes are negatives and k-means runs once for each clustering; the authors draw some "
        "prototypes and keep the best of five. Clusters are what the embedding groups, which need not be the class. "
        + _NO_RECALL,
    ),
    "contrastive_margin": (
        _CLASSES,
        "mean over pairs of max(d − m₊, 0)² / 2 for equal classes, m₊ = 0 or, double-margin, above it, "
        "and of max(m − d, 0)² / 2 for others",
        "Classes shrink to points: what differs within a class is lost. " + _NO_RECALL,
    ),
    "triplet": (
        _CLASSES,
        "mean over a, p of max(d(a, p)² − d(a, n)² + m, 0)",
        "Most triplets soon cost nothing, and the hardest ones collapse; which negatives are drawn decides. "
        + _NO_RECALL,
    ),
    "margin": (
        f"{_CLASSES} y = 1 for positives, −1 for negatives; β: learned boundary.",
        "mean of the positive ones among α + y (d − β)",
        "Depends on its sampler: distance-weighted draws bound the variance of gradients. " + _NO_RECALL,
    ),
    "cross_entropy": (
        "f_k: logit of the class k; c: the class of an image; s: label smoothing.",
        "−mean ((1 − s) ln softmax_c(f) + s mean_k ln softmax_k(f))",
        "The baseline, not contrastive: what does not separate the classes is lost, and classes are as many as the "
        "training pairs have. " + _NO_RECALL,
    ),
    "one_vs_all": (
        "f_w: logit of the word w; I_w: images of the batch whose caption has w.",
        "Σ_w (mean over I_w of −ln σ(f_w) + mean over all others of −ln σ(−f_w))",
        "Order and grammar of captions are lost. " + _NO_RECALL,
    ),
    "multiclass": (
        "f: logits of all words; W: the words of a caption.",
        "−mean 1/|W| Σ_{w∈W} ln softmax_w(f)",
        "Words compete although several are right; order and grammar are lost. " + _NO_RECALL,
    ),
    "pairwise_ranking": (
        "f: logits of all words; w: a word of the caption, v: one that it lacks, drawn again in every update.",
        "mean max(0, m − f_w + f_v)",
        "Two words are learned from an image at a time, so it is slower than the other two; ranks, no probabilities. "
        + _NO_RECALL,
    ),
    "caption_prediction": (
        "t_1 … t_L: tokens of the caption of image x.",
        "−mean ln p(t_l | t_1 … t_{l−1}, x)",
        "A class is named by the likelihood of its prompts, which also knows how frequent a name is: rare classes are "
        "rarely named. The image is one vector, not a grid. Expensive: a prompt is scored for every class.",
    ),
    "word2vec": (
        "c: vector of a word, o: of a word of its context, k: of drawn words.",
        "−mean (ln σ(o · c) + Σ_k ln σ(−k · c)); full and hierarchical softmax: −mean ln p(o | c)",
        "Images are not seen. A caption is the mean of its words, so order is lost; words that stand in the same "
        "places come to lie together, opposites too.",
    ),
    "decoder": (
        "x_t: noised picture, v: velocity, e: embedding of a frozen tower, w: min-SNR weight.",
        "mean |x − mean picture(e)|² + mean w(t) |v − v̂(x_t, t, e)|² + the errors of two priors from texts to pictures",
        "A small decoder is a lower limit of what the embedding holds; compare decoders of equal size alone.",
    ),
}
"""Kind of an objective -> its symbols, what is minimized, and what to beware of."""


def help_of(objective: type[Any]) -> tuple[str, str]:
    """Return what an objective does in a sentence, and its help: formula, paper and caveat as plain text.

    An objective of a plug-in has what its docstring says.
    """
    first, _, rest = inspect.cleandoc(objective.__doc__ or "").partition("\n\n")
    # An address has a line of its own: it would be broken after its slashes.
    sentence, more = " ".join(first.split()), " ".join(rest.split()).replace("`", "").replace(" https://", "\nhttps://")
    if objective.kind not in HELP:
        return sentence, more
    symbols, formula, caveat = HELP[objective.kind]
    parts = (f"Minimized: {formula}", symbols, more, f"Caveats: {caveat}")
    return sentence, "\n\n".join(parts)
