"""The commands that draw and compare, through the real command line."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.nightly import few_plain, nightly_except
from trainer.__main__ import main
from trainer.render_html.report import _facts
from trainer.scheduling import energy
from trainer.store.results_table import ResultsTable

pytestmark = pytest.mark.slow


@pytest.fixture
def trainer(charted, capsys):
    def call(*words: str) -> tuple[int, str, str]:
        status = main([*words, "--workspace", str(charted.folder)])
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize("kind", nightly_except(["curves", "similarity", "map"], "map"))
def test_export_writes_every_format(trainer, tmp_path, kind: str):
    files = [str(tmp_path / f"f.{suffix}") for suffix in ("svg", "pdf", "png", "csv")]
    status, out, _ = trainer("export", kind, "--runs", "1", "cloob-scenes", "--out", *files[:2], "--out", *files[2:])
    assert status == 0
    assert out.split() == files
    assert all((tmp_path / f"f.{suffix}").stat().st_size > 500 for suffix in ("svg", "pdf", "png", "csv"))


def test_the_command_in_the_file_draws_the_same_file(trainer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer("export", "map", "--runs", "2", "1", "--color", "label", "--step", "80", "--out", str(tmp_path / "f.svg"))
    before = (tmp_path / "f.svg").read_bytes()
    line = re.search(r"<dc:description>(.*?)</dc:description>", before.decode())[1]
    (tmp_path / "f.svg").unlink()
    assert trainer(*shlex.split(line)[1:])[0] == 0
    assert (tmp_path / "f.svg").read_bytes() == before


def test_what_cannot_be_is_said_in_a_sentence(trainer, tmp_path):
    status, _, err = trainer("export", "curves", "--runs", "1", "--out", str(tmp_path / "f.gif"))
    assert (status, err.count("\n")) == (2, 1)
    assert "choose a name that ends in" in err
    status, _, err = trainer("export", "similarity", "--runs", "9", "--out", str(tmp_path / "f.svg"))
    assert status == 2
    assert "clip-scenes" in err, "the message names the runs there are"
    assert not list(tmp_path.iterdir())


def test_compare_prints_and_writes(trainer, tmp_path):
    status, out, _ = trainer("compare", "1", "2", "--out", str(tmp_path / "t.md"), str(tmp_path / "t.csv"))
    assert status == 0
    assert "Image to text R@1" in out
    assert "\n| | CLIP · s0 | CLOOB · s0 |" in (tmp_path / "t.md").read_text(encoding="utf-8")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8").startswith("dataset,split,metric")
    status, out, _ = trainer("compare", "1", "2", "--json")
    assert json.loads(out)["runs"][1]["objective"] == "cloob"
    assert trainer("compare", "1", "--out", "x.docx")[0] == 2


@few_plain(1, "analysis", ["similarity", "geometry"])
def test_analyze_prints_and_gives_json(trainer, analysis: str):
    status, out, _ = trainer("analyze", analysis, "1", "2", "--split", "combinations")
    assert status == 0
    assert "combinations" in out
    _, out, _ = trainer("analyze", analysis, "1", "2", "--json")
    clip, cloob = json.loads(out)["runs"]
    assert (clip["n"], cloob["name"]) == (240, "cloob-scenes")
    assert {"auc_hard10", "overlap_hard10"} <= set(clip) or {"modality_gap", "ajne_text"} <= set(clip)


def test_report_is_one_page_with_everything(trainer, tmp_path, umap_as_pca, monkeypatch):
    logged = ResultsTable.last_values
    energies = {1: {energy.METRIC: 125.0}}
    monkeypatch.setattr("trainer.charts.measures.geometry.DRAWS", 19)  # 199 simulated samples are a fifth of the test
    monkeypatch.setattr(ResultsTable, "last_values", lambda table, run: logged(table, run) | energies.get(run, {}))
    assert trainer("report", "1", "--without", "curves", "map", "prompts", "--out", str(tmp_path / "few"))[0] == 0
    assert {file.stem for file in (tmp_path / "few").glob("*.svg")} <= {"similarity", "calibration"}
    status, out, _ = trainer("report", "1", "2", "--out", str(tmp_path / "r"), "--json")
    assert status == 0
    values = json.loads(out)
    page = (tmp_path / "r" / "index.html").read_text(encoding="utf-8")
    names = {path.name for path in (tmp_path / "r").iterdir()}
    for stem in ("curves", "similarity", "map-pca-modality", "map-pca-label", "map-umap-modality", "map-umap-label"):
        assert {f"{stem}.svg", f"{stem}.png", f"{stem}.csv"} <= names
    assert {"index.html", "metrics.json", "comparison.md", "comparison.csv"} <= names
    assert page.count("data:image/svg+xml;base64,") == 6
    assert not re.findall(r'(?:src|href)="(?:https?:|/)', page), "it needs nothing from elsewhere"
    assert "Objective: Beta" in page
    assert "Energy of the GPUs" in page
    assert page.count("125 Wh") == 1
    assert (
        json.loads((tmp_path / "r" / "metrics.json").read_text(encoding="utf-8"))["similarity"] == values["similarity"]
    )


def test_names_are_text_in_the_page():
    assert "<script>" not in _facts([{"Run": "<script>alert(1)</script>"}])


def test_charts_and_figures_load_no_torch_and_no_matplotlib():
    modules = ["render_mpl.panel", "render_mpl.pair_map", "render_mpl.files", "render_html.report", "render_mpl.style"]
    lines = [f"import trainer.{name}" for name in modules]
    lines += [
        "import sys",
        "print([m for m in ('torch', 'matplotlib', 'umap', 'scipy', 'sqlalchemy') if m in sys.modules])",
    ]
    found = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
