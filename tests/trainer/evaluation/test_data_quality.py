"""The quality of a run's data: planted faults are found, flagged pairs are left out, captions stay exact."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.builders import writable_copy
from trainer import config
from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.analysis.units import units_of_numbers
from trainer.evaluation.mispair_judges import chosen_judges, judge
from trainer.store import Workspace
from trainer.store.quality_reports import Judgment, Measured, QualityFinding, QualityReport, read_quality, write_quality
from trainer.store.reviews import pair_keys


def test_a_report_is_read_as_it_was_written_and_a_damaged_one_is_skipped(tmp_path: Path):
    folder = tmp_path / "runs" / "0001-one"
    folder.mkdir(parents=True)
    run = Measured(1, "one", 8, {"train": 0.1}, {"train": 0.2}, {"train": float("nan")})
    finding = QualityFinding("mispair", "train", 3, ("key",), "3.jpg", "=a", margins=(0.5,), ranks=((4, 5),))
    report = QualityReport("d", 5.0, (run,), {"train": 9}, {"train": 9}, {"mispair": {"train": 1}}, (finding,))
    file = write_quality(folder, report)
    found = read_quality(folder, [(1, None)])
    assert found is not None
    assert (found.findings[0].margins, found.findings[0].ranks, found.count("mispair")) == ((0.5,), ((4, 5),), 1)
    assert read_quality(folder, [(1, 7)]) is None
    assert read_quality(folder, [(1, 8), (2, None)]) is None
    plain = json.loads(file.read_text())
    for damage in ({"findings": [{}]}, {"runs": []}, {"pairs": 3}, {"counts": None}):
        file.write_text(json.dumps(plain | damage))
        assert read_quality(folder, [(1, None)]) is None


@pytest.fixture
def checked(asked: Workspace, tmp_path: Path) -> Workspace:
    """Return a copy of two runs with checkpoints."""
    return writable_copy(asked.folder, tmp_path / "w")


@pytest.mark.slow
def test_the_commands_check_review_and_clean(checked: Workspace, tmp_path: Path, capsys):
    space = ["--workspace", str(checked.folder), "--json"]
    assert main(["data", "review", "1", "--flag", "x", *space]) == 2, "nothing was checked yet"
    capsys.readouterr()
    assert main(["data", "quality", "1", "2", "--out", str(tmp_path / "found.csv"), *space]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [one["run"] for one in report["runs"]] == [1, 2]
    assert {one["split"] for one in report["judgments"]} == set(report["pairs"])
    assert all(one["planted"] <= one["pairs"] // 10 for one in report["judgments"])
    found = read_quality(checked.runs.get(1).folder, [(1, None), (2, None)])
    assert found is not None
    assert found.pairs["train"] == report["pairs"]["train"]
    splits = main(["data", "cleaned", "1", *space])
    assert splits == 2, "no pair is flagged"
    capsys.readouterr()
    write_quality(checked.runs.get(1).folder, _with_a_finding(checked, found))
    key = read_quality(checked.runs.get(1).folder, [(1, None), (2, None)]).findings[-1].keys[0]
    assert main(["data", "review", "1", "--flag", key, "--note", "wrong", *space]) == 0
    assert json.loads(capsys.readouterr().out)["flagged"] == 1
    assert main(["data", "cleaned", "1", "--out", str(tmp_path / "kept.parquet"), *space]) == 0
    written = json.loads(capsys.readouterr().out)
    rows = pq.read_table(written["file"]).to_pylist()
    assert written["kept"] == len(rows) == found.whole["train"] - 1
    assert written["left_out"] == 1
    keys = pair_keys([row["filepath"] for row in rows], [row["title"] for row in rows], checked.folder)
    assert key not in keys
    held = sum(n for split, n in found.whole.items() if split != "train")
    assert len(pq.read_table(written["heldout"])) == held
    assert config.Table(path=written["file"], heldout_path=written["heldout"]).path.endswith("kept.parquet")
    assert main(["data", "review", "1", "--clear", key, *space]) == 0
    assert json.loads(capsys.readouterr().out)["flagged"] == 0
    assert main(["data", "helped", "1", "2", *space]) == 0, "the same held-out pairs"
    told = json.loads(capsys.readouterr().out)
    assert [one["words"] for one in told["directions"]] == ["image to text", "text to image"]


def _with_a_finding(workspace: Workspace, report: QualityReport) -> QualityReport:
    """Return the report with the first training pair as its last finding."""
    from trainer.analysis.progress import silent
    from trainer.data import load

    data = workspace.runs.config_of(1)
    train = load(data.data, image_size=data.model.image_size, workspace_folder=workspace.folder, progress=silent).train
    key = pair_keys(train.paths[:1], train.captions[:1], workspace.folder)
    first = QualityFinding("outlier", "train", 0, tuple(key), train.paths[0], train.captions[0])
    return replace(report, findings=(*report.findings, first))


def test_who_cannot_tell_says_so_and_damaged_counts_are_refused(tmp_path: Path):
    """The rule: the 95 % interval of the detected share lies above one half (Wilson, by hand for 14 of 20)."""
    run = ((1, "one", 8),)
    sure = Judgment("train", run, True, 900, 4, 20, 15)
    assert sure.interval == pytest.approx((0.531, 0.888), abs=1e-3)
    assert sure.can_tell
    assert "cannot tell" not in sure.words
    assert "of 20 planted mispairs 15 detected (75 %, 53 to 89)" in sure.words
    for detected, planted in ((14, 20), (1, 55), (0, 0)):
        unsure = Judgment("train", run, True, 900, 4, planted, detected)
        assert not unsure.can_tell
        assert unsure.words.endswith("this run cannot tell which pairs are mispaired")
    measured = Measured(1, "one", 8, {}, {}, {})
    folder = tmp_path / "runs" / "0001-one"
    folder.mkdir(parents=True)
    file = write_quality(folder, QualityReport("d", 5.0, (measured,), {}, {}, {}, (), (sure,)))
    assert read_quality(folder, [(1, None)]).judgments == (sure,)
    plain = json.loads(file.read_text())
    plain["judgments"][0]["detected"] = 21
    file.write_text(json.dumps(plain))
    assert read_quality(folder, [(1, None)]) is None
    del plain["judgments"]
    file.write_text(json.dumps(plain))
    assert read_quality(folder, [(1, None)]).judgments == (), "of an older version"


def test_pairs_are_judged_by_the_run_that_detects_the_most_planted_ones():
    units = units_of_numbers(np.arange(400), np.arange(400))
    draw = np.random.default_rng(0)
    image, noise = (draw.standard_normal((400, 16)).astype(np.float32) for _ in range(2))
    text = image + 0.2 * noise
    text[[3, 350]] = text[[350, 3]]
    image, text = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (image, text))
    by_heart = judge([(1, "own", 8)], [(image, image)], units, advantages=[8.0], trained=True, progress=silent)
    half = np.arange(200)
    apart = judge(
        [(2, "other", 8)], [(image, text)], units, rows=half, advantages=[0.0], trained=False, progress=silent
    )
    assert (by_heart.share, apart.share) == (0.0, 1.0)
    assert not by_heart.wrong.any()
    assert apart.rows[apart.wrong].tolist() == [3]
    chosen = chosen_judges([by_heart, apart], 400)
    assert chosen.tolist() == [1] * 200 + [0] * 200
    judgment = apart.judgment("train", half)
    assert (judgment.pairs, judgment.suspected, judgment.trained) == (200, 1, False)


@pytest.mark.slow
def test_a_run_is_trusted_no_more_on_what_it_learned_than_on_what_it_did_not(checked: Workspace, capsys):
    """Runs of eight steps on 24 held-out pairs: two are planted there, which says nothing."""
    assert main(["data", "quality", "1", "--workspace", str(checked.folder)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "cannot tell" in line]
    assert len(lines) >= 2
    found = read_quality(checked.runs.get(1).folder, [(1, None)])
    shares = {one.split: one.detected / one.planted if one.planted else -1 for one in found.judgments}
    assert shares["train"] <= min(shares.values())
