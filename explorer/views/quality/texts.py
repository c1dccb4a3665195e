"""Sentences of the view."""

from __future__ import annotations

from typing import Final

NO_RUN: Final = "Choose run A in the bar above. Its model searches its training data for problems."
NOT_CHECKED: Final = (
    "The model of run A embeds the training and the held-out pairs and searches for wrong captions, duplicate images "
    "and outliers. It takes about a minute per ten thousand pairs, and continues if you leave this view."
)
