"""The tested versions are listed twice, identically, and without URLs."""

import datetime
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pins() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pins", ROOT / "packaging" / "pins.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_files_hold_the_same_versions(pins: ModuleType):
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["uv"]["constraint-dependencies"] == pins.pinned(lock)
    needed = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["train"]]
    direct = {re.match(r"[\w-]+", line)[0] for line in needed}
    assert direct <= {line.partition("==")[0] for line in pins.pinned(lock)}


def test_each_has_hashes_and_none_an_address(pins: ModuleType):
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert not re.search(r"(?m)^--", lock), "an option of pip could name one, too"
    entries = re.split(r"\n(?=[A-Za-z0-9])", lock.partition("\n")[2])
    assert all("--hash=sha256:" in entry for entry in entries)
    assert pins.tested_on(lock) <= datetime.date.today() + datetime.timedelta(days=1)


def test_old_ones_warn_and_fail_nothing(pins: ModuleType, tmp_path: Path, monkeypatch, capsys):
    for days, words in ((59, "The pinned versions"), (61, "Warning: the pinned versions")):
        day = datetime.date.today() - datetime.timedelta(days=days)
        (tmp_path / "lock").write_text(pins.HEAD.format(day), encoding="utf-8")
        monkeypatch.setattr(pins, "LOCK", tmp_path / "lock")
        assert pins.main([]) == 0
        assert capsys.readouterr().out.startswith(words)
