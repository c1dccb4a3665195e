"""The help text of the Classify view."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
Zero-shot classification. Every label is put into every template; the sentences are embedded by the run's text \
tower, averaged, and scaled to length 1: one vector w_c a label. The image is embedded by the image tower: x, \
length 1.

probability of c  =  exp(w_c·x / τ)  /  Σ exp(w_c'·x / τ)

1/τ is the run's own: learned by CLIP, fixed for CLOOB. It decides how sharp the percentages are, so those of two \
runs are not on one scale: compare which label comes first, and by how much it leads within a run. The \
probabilities are among the labels given; a picture of none of them still gets some label.

The checkpoint of the step chosen above answers; where a run keeps it no longer, its newest one does, and the line \
under the run's name says so.

The time is what the run needed to read and embed the picture and to compare it, and to embed labels that are new.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021, section 3.1.
https://arxiv.org/abs/2103.00020"""
