"""Sentences of the view."""

from __future__ import annotations

ONE_STEP = "There is only one snapshot. Choose run B in the bar above, or wait for the next evaluation."
