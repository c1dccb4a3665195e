"""Evidence bundles come back as runs with curves; what is none, or hostile, is refused in words."""

import shutil
import zipfile
from pathlib import Path

import pytest

from trainer.config import presets
from trainer.distribution.bundle_files import is_bundle
from trainer.errors import UserError
from trainer.store import RunLog, Workspace
from trainer.store.journal import Entry
from trainer.trackers import bundles


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a bundle folder of one run with ten numbers, as `trainer bundle` lays it."""
    there = Workspace(tmp_path / "there")
    number = there.runs.create(presets.preset("clip-scenes"))
    with RunLog.claim(there, number) as log:
        log.entries([Entry(step, 1.7e9 + step, float(step), {"train/loss": 2.0 / (step + 1)}) for step in range(10)])
        there.results.add_checkpoint(number, 9, there.runs.get(number).folder / "checkpoints" / "step_000009")
        log.status("finished")
    assert "step_000009" in (there.runs.get(number).folder / "run.json").read_text(encoding="utf-8")
    row = there.runs.get(number)
    folder = tmp_path / "evidence"
    (folder / "runs" / row.folder.name).mkdir(parents=True)
    for name in ("config.toml", "run.json", "metrics.jsonl"):
        shutil.copy(row.folder / name, folder / "runs" / row.folder.name / name)
    (folder / "bundle.json").write_text("{}", encoding="utf-8")
    (folder / "runs" / row.folder.name / "evil.py").write_text("raise SystemExit", encoding="utf-8")
    return folder


def packed(folder: Path, file: Path) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return file


@pytest.mark.parametrize("name", ["", "evidence.zip"])
def test_its_runs_arrive_with_their_curves(bundle: Path, tmp_path: Path, name: str):
    path = packed(bundle, tmp_path / name) if name else bundle
    assert is_bundle(path)
    workspace = Workspace(tmp_path / "here")
    (run,) = bundles.import_bundle(workspace, path)
    steps, values, _ = workspace.results.series(run.id, "train/loss")
    assert list(steps) == list(range(10))
    assert list(values) == pytest.approx([2.0 / (step + 1) for step in range(10)])
    row = workspace.runs.get(run.id)
    assert row.status == "finished"
    assert not (row.folder / "evil.py").exists()
    assert (run.curves, run.numbers) == (1, 10)
    assert workspace.results.checkpoints(run.id) == [], "a checkpoint whose files are not in the bundle"


def test_what_is_none_is_told(tmp_path: Path):
    other = packed(tmp_path, tmp_path.parent / f"{tmp_path.name}.zip")
    assert not is_bundle(other)
    assert not is_bundle(tmp_path)
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"PK\x03\x04 and no more")
    assert not is_bundle(damaged)
    for path in (other, damaged):
        with pytest.raises(UserError):
            bundles.import_bundle(Workspace(tmp_path / "ws"), path)
    assert Workspace(tmp_path / "ws").runs.all() == []


def test_a_name_leads_nowhere_else(bundle: Path, tmp_path: Path):
    file = tmp_path / "odd.zip"
    (folder,) = (bundle / "runs").iterdir()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("bundle.json", "{}")
        for name in ("../../escaped", "..", "C:", "a\\b"):
            for one in ("config.toml", "run.json", "metrics.jsonl"):
                archive.writestr(f"runs/{name}/{one}", (folder / one).read_bytes())
    workspace = Workspace(tmp_path / "here")
    found = bundles.import_bundle(workspace, file)
    assert len(found) == 1, "`..` is a text here and no folder; the others name no single folder"
    assert not list(tmp_path.glob("**/escaped"))
    assert {path.parent for path in tmp_path.glob("here/runs/*")} == {tmp_path / "here" / "runs"}


def test_what_unfolds_to_too_much_is_refused(bundle: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(bundles, "LARGEST", 10_000)
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bundle.json", "{}")
        archive.writestr("runs/0001-a/metrics.jsonl", b" " * 50_000_000)
    assert file.stat().st_size < 100_000
    with pytest.raises(UserError, match="larger than a bundle can be"):
        bundles.import_bundle(Workspace(tmp_path / "ws"), file)
