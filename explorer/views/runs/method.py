"""The help text of the Runs view."""

from __future__ import annotations

from typing import Final

METHOD: Final = """Every row is a run: one configuration trained once, in its own process, which continues when this \
window is closed.

R@1 (recall at 1) is the share of held-out images whose own caption is the nearest of all held-out captions, by \
cosine similarity. Identical captions count once, as do identical images, and an image with several captions asks \
once: any of them is right. Chance R@1 is 1 divided by their number.

Curves: the faint line is what was logged. The strong one is its exponential moving average with bias correction, \
s(t) = Σ w^(t−i) x(i) / Σ w^(t−i) over all steps i ≤ t, so that it starts at the first value.

Losses of different objectives are different quantities, on different scales: InfoNCE (CLIP) and InfoLOOB (CLOOB) \
never share an axis. Compare runs by recall, not by loss.

Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021, arXiv:2103.00020
Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022, arXiv:2110.11316"""
