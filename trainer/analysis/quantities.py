"""Format durations, moments and steps: with units and no more digits than are meaningful."""

from __future__ import annotations

import math
from datetime import datetime, timedelta


def duration(seconds: float | None) -> str:
    """Format a duration as `8 s`, `1 min 05 s`, `2 h 03 min` or `3 d 04 h`; empty for None."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    rounded = max(0, round(seconds))
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60:02d} s"
    if rounded < 86_400:
        return f"{rounded // 3600} h {rounded % 3600 // 60:02d} min"
    return f"{rounded // 86_400} d {rounded % 86_400 // 3600:02d} h"


def about(seconds: float) -> str:
    """Format a duration that is only estimated: `5 min`, or hours from 100 minutes on."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} h"


def time_left(seconds: float | None) -> str:
    """Format how long a job will still take, wherever it is shown: `about 5 min left`; empty where that is unknown."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    return f"{estimate(seconds)} left"


def estimate(seconds: float) -> str:
    """Format how long something will take by an estimate, which no second is known of: `about 5 min`."""
    return f"about {about(seconds)}" if seconds >= 60 else "less than 1 min"


def moment(unix_seconds: float | None, *, now: float) -> str:
    """Format a Unix time as `Today 14:03`, `Yesterday 09:12`, `3 Nov 14:03` or `3 Nov 2025`; empty for None."""
    if unix_seconds is None:
        return ""
    then, today = datetime.fromtimestamp(unix_seconds), datetime.fromtimestamp(now)
    if then.date() == today.date():
        return f"Today {then:%H:%M}"
    if then.date() == (today - timedelta(days=1)).date():
        return f"Yesterday {then:%H:%M}"
    if then.year == today.year:
        return f"{then.day} {then:%b %H:%M}"
    return f"{then.day} {then:%b %Y}"


def steps_of(done: int, total: int) -> str:
    """Format progress as `46 of 384`, or only the steps done if the total is unknown."""
    return f"{done:,} of {total:,}" if total else f"step {done:,}"


def steps(done: int, total: int) -> str:
    """Format progress as `350 / 1,720`, or only the steps done if the total is unknown."""
    return f"{done:,} / {total:,}" if total else (f"{done:,}" if done else "")
