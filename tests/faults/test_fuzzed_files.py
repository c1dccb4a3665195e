"""Mutated files of vectors, logs, tars and tables of pairs are read, or refused in words, in time and in bounds."""

from pathlib import Path

import fuzz_formats as fuzzing
import pytest

from tests.nightly import few_plain, nightly_except

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(3_600)]

QUICK = ("npy", "npz", "packed npz", "pt", "safetensors")
"""Kinds that this process reads itself, in milliseconds."""


def told(outcome: fuzzing.Outcome) -> str:
    took = f"{outcome.cpu_s:.1f} s, {outcome.grown:,} bytes"
    return f"{outcome.kind} {outcome.seed}: {outcome.end}, {took}: {outcome.words[-900:]}"


@pytest.mark.parametrize("kind", nightly_except(fuzzing.KINDS, *QUICK, "tar", "events"))
def test_a_sound_file_is_read(kind: str, tmp_path: Path) -> None:
    content = fuzzing.sound(kind)
    outcome = fuzzing.tried(kind, 0, tmp_path, content)
    assert outcome.end == "read", told(outcome)


@few_plain(4, "kind", nightly_except(fuzzing.KINDS, *QUICK, "csv", "framed events", "wandb", "tar"))
def test_mutated_files_are_read_or_refused_in_words(kind: str, tmp_path: Path, faults) -> None:
    count = faults.times(400) if kind in QUICK else faults.times(100) // 10 + 2
    outcomes = [fuzzing.tried(kind, seed, tmp_path) for seed in range(count)]
    wrong = [told(one) for one in outcomes if not one.is_good]
    faults.row("S6", f"bytes of a file are changed ({kind})", "read or refused in words", count, count - len(wrong))
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_ten_minutes_of_mutated_files_end_no_process(tmp_path: Path, faults) -> None:
    ends = fuzzing.fuzz(list(fuzzing.KINDS), 1, 600, tmp_path, tmp_path / "kept")
    wrong = {end: count for end, count in ends.items() if end[1].startswith("WRONG")}
    tried = sum(ends.values())
    faults.row(
        "S6", "bytes of files are changed, ten minutes", "read or refused in words", tried, tried - sum(wrong.values())
    )
    assert not wrong
    assert tried > 100


def test_an_end_that_is_neither_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_file: Path, _folder: Path) -> None:
        raise IndexError("out of range")

    monkeypatch.setitem(fuzzing.KINDS, "npy", fuzzing.Kind("v.npy", lambda: b"x" * 99, fail))
    outcome = fuzzing.tried("npy", 1, tmp_path)
    assert (outcome.end, outcome.is_good) == ("IndexError", False)
