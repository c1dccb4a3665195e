"""No file that is opened runs code, fills the memory or blocks forever: each is refused with a message."""

import re
from pathlib import Path

import pytest
from corpus.hostile import CASES
from corpus.warm import Trial, trials

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

SECONDS, MIB = 2.0, 500.0


def wrong(trial: Trial) -> str:
    """Return the violated promise; empty if there is none."""
    if trial.code != 2 or "Traceback" in trial.words or not trial.words.strip():
        return f"ended with {trial.code} after {trial.wall_s:.1f} s: {trial.words[-600:]!r}"
    if re.search(r"no pair to (train|validate) on", trial.words) and "The first of" not in trial.words:
        return f"was never opened: {trial.words[-200:]!r}"
    if trial.cpu_s > SECONDS or trial.peak_mib > MIB:
        return f"took {trial.cpu_s:.1f} s of the processor and {trial.peak_mib:.0f} MiB: {trial.words[-200:]!r}"
    return ""


def test_every_hostile_file_is_refused_in_words(faults, tmp_path: Path) -> None:
    assert len(CASES) >= 60
    names = list(CASES)[:: faults.every(10)]
    canary = tmp_path / "canary"
    tried = trials(names, tmp_path, canary)
    bad = {trial.name: said for trial in tried if (said := wrong(trial))}
    ran = canary.exists()

    told = f"refused with a reason, ≤ {SECONDS:.0f} s of processor time, ≤ {MIB:.0f} MiB; no code ran"
    faults.row(9, "a hostile file is opened", told, len(names), 0 if ran else len(tried) - len(bad))
    assert [trial.name for trial in tried] == names
    assert not ran
    assert not bad, "\n".join(f"{name}: {said}" for name, said in bad.items())
