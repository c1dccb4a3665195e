"""The help text of the Classify view."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
Zero-shot classification. Each label is inserted into each template; the sentences are embedded by the run's \
text tower, averaged, and normalized: one vector w_c per label. The image is embedded by the image tower: x, \
length 1.

probability of c  =  exp(w_c·x / τ)  /  Σ exp(w_c'·x / τ)

For SigLIP each label is judged by itself, with the run's bias b:  1 / (1 + exp(-(w_c·x / τ + b))). These do not add \
up to 100 %: an image may show several labels or none. A single label has no share by the formula above, which would \
be 100 % for any image; its cosine w_c·x is shown.

1/τ is that of the run: learned for CLIP, fixed for CLOOB. It sets how sharp the percentages are, so they are not \
comparable across runs: compare which label ranks first, and by how much within a run. Probabilities are over the \
given labels; an image that shows none of them still gets one.

Predictions use the checkpoint of the step chosen above; if it was not kept, they use the newest one, as the line \
under the run's name says.

The time covers reading and embedding the image, and embedding labels that are new.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021, section 3.1.
https://arxiv.org/abs/2103.00020"""
