"""Documents that anybody may have written are decoded to dataclasses or refused by field."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainer.untrusted.documents import BadDocument, convert, decode, nan_for_null, null_for_nan, parse


@dataclass(frozen=True)
class Part:
    name: str
    share: float = 0.5


@dataclass(frozen=True)
class SmallReport:
    step: int
    parts: tuple[Part, ...] = ()


def test_a_document_becomes_what_its_class_says(tmp_path: Path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"step": 3, "parts": [{"name": "x", "share": 1}, {"name": "\ud800"}], "format": 1}))
    assert decode(file, SmallReport) == SmallReport(3, (Part("x", 1.0), Part("\\ud800")))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "a.json: a.json is not a JSON object"),
        ("{", "a.json: Expecting"),
        ("{}", "a.json: it is not a small report: object missing required field step"),
        ('{"step": "3"}', "a.json: it is not a small report: expected int, got str (step)"),
        ('{"step": true}', "a.json: it is not a small report: expected int, got bool (step)"),
        ('{"step": 1, "parts": [{"name": null}]}', "expected str, got null (parts[0].name)"),
        ('{"step": 1, "parts": [{"name": "", "share": 1' + "0" * 400 + "}]}", "number out of range"),
        ('{"step": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is too deep"),
    ],
)
def test_another_one_is_refused_and_the_field_named(tmp_path: Path, text: str, reason: str):
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(BadDocument) as refusal:
        decode(file, SmallReport)
    assert reason in str(refusal.value)


def test_a_longer_file_is_not_read(tmp_path: Path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"step": 1, "note": "x" * 100}))
    with pytest.raises(OSError, match="longer than 50 bytes"):
        decode(file, SmallReport, 50)


def test_bytes_that_are_not_text_are_refused():
    with pytest.raises(BadDocument):
        parse(b'{"step": "\xff"}', SmallReport)
    assert parse(b'{"step": 2}', SmallReport) == SmallReport(2)


def test_numbers_that_json_lacks_are_null():
    values = {"a": [1.0, math.inf, (math.nan,)], 3: "x"}
    assert null_for_nan(values) == {"a": [1.0, None, [None]], "3": "x"}
    read = nan_for_null({"name": "x", "share": None})
    assert math.isnan(convert(read, Part).share)
