"""What the `?` of the Loss lab tells."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
Toy batch. Logits are similarities over the temperature τ. The softmax of a row says which text an image takes \
for its own, that of a column which image a text takes; −ln of the matched share is the cross-entropy, and the \
loss is the mean of both directions (Radford et al., CLIP, 2021, figure 3). With the dot products shown first it \
is 0.780074, with cosines 0.712431, and with cosines at τ = 0.07 it is 0.000438; notes that print 0.717 have \
slips on the way.

Saturation. One anchor with p the softmax probability of its match. InfoNCE pulls on the match with (1 − p) / τ, \
because the match stands in its own denominator; InfoLOOB leaves it out and pulls with 1 / τ (Fürst et al., \
CLOOB, 2022: ∂InfoNCE = (1 − p) ∂InfoLOOB; shown without CLOOB's factor τ). DHN-NCE weighs negative j with W_j = \
(B − 1) softmax(β S)_j over the negatives (Koleilat et al., MedCLIP-SAM, 2024, equations 1–4) and is computed as \
−S + ln(B − 1) + lse((1 + β) S_j) − lse(β S_j). Its push on a negative can be below zero: the weights' \
normaliser then attracts easy negatives; with constant weights it cannot.

Why not the merge. Notes set W_ii = −1 to draw the match into the sum of the negatives. That turns ln b − ln a \
into ln(b − a): another loss, whose pull on the match is a / (b − a) instead of 1, and which is no number once a \
> b. It is drawn in red to be recognised, and implemented nowhere else.

Margins. d is the distance of unit vectors, 0 to 2. Contrastive: d²/2 for matched and max(m − d, 0)²/2 for \
unmatched pairs (Hadsell et al., 2006, equation 4). Triplet: max(d(a,p)² − d(a,n)² + m, 0) (FaceNet, 2015, \
equation 3). Margin: max(α + y (d − β), 0), y = 1 for matched and −1 for unmatched pairs (Wu et al., 2017, \
equation 7). Two random points in n dimensions lie at distance d with density q(d) ∝ d^(n−2) (1 − \
d²/4)^((n−3)/2) (equation 6): nearly always about √2. Distance-weighted sampling draws in inverse proportion to \
q, with cutoffs at 0.5 and 1.4. The histograms are 1,000 simulated anchors whose negatives are uniform on the \
sphere; real embeddings are not.

Retrieval. A state retrieves softmax(β X ξ) X, made unit (Ramsauer et al., 2020, equation 3). exp(H) of the \
shares is how many patterns it averages. In a batch a state finds itself among N stored patterns; with the \
others at cosine c its share is 1 / (1 + (N − 1) exp(−β (1 − c))). The rule β = 8 + ln((N − 1) / 511) keeps that \
share at cosine 0 as it is at β = 8, N = 512; it is derived here, not taken from the paper."""
