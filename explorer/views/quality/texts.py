"""Sentences of the view."""

from __future__ import annotations

from typing import Final

NO_RUN: Final = "Choose run A in the bar above. Its model searches its training data for problems."
CHECKED_ELSEWHERE: Final = "Checked in a workspace of your own"
READ_ONLY_DATA: Final = "Read-only: the data of your own runs can be checked."
NOT_CHECKED: Final = (
    "The model of run A embeds the training and the held-out pairs and searches for wrong captions, duplicate images "
    "and outliers. It takes about a minute per ten thousand pairs, and continues if you leave this view."
)
