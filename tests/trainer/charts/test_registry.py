"""Every chart of the registry is complete, and another one needs a single file."""

import csv
import importlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from explorer.views import VIEWS
from trainer.charts import ChartError, registry
from trainer.charts.settings import checked, options, parse, words
from trainer.charts.spec import Request, Target, request_words, targets_of
from trainer.config.fields import fields_of
from trainer.plugins import FILES
from trainer.untrusted.safe_subprocess import python

CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"
PLUGIN = next(
    block for block in CONTRIBUTING.read_text(encoding="utf-8").split("```python")[1:] if "run-product" in block
).partition("```")[0]
"""The chart that the document shows, as a file of its own."""


@pytest.mark.parametrize("name", [name for group in registry.BUILT_IN.values() for name in group])
def test_a_chart_is_complete(name: str):
    chart = registry.load(name)
    view = next(view for view, group in registry.BUILT_IN.items() if name in group)
    assert (chart.name, chart.view) == (name, view)
    assert view in {place.name for place in VIEWS}
    assert chart.label
    assert chart.question.endswith(("?", "."))
    module = importlib.import_module(f"trainer.charts.{name.replace('-', '_')}")
    assert module.CHART is chart
    for one in fields_of(chart.settings):
        assert one.label
        assert one.help.endswith(".")
    default = checked(chart.settings())
    assert options(default) == []
    assert parse(chart.settings, words(default)) == default


def test_names_are_given_once():
    assert len({*registry.names()}) == len(registry.names())


def test_a_chart_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ChartError, match="hubness"):
        registry.load("no-such-chart")


def test_steps_go_with_their_runs():
    assert targets_of(["1", "2"]) == (Target("1"), Target("2"))
    assert targets_of(["1", "2"], [24]) == (Target("1", 24), Target("2", 24))
    assert targets_of(["1", "2"], [24, None]) == (Target("1", 24), Target("2", None))
    assert targets_of(["1"], [24, 36]) == (Target("1", 24), Target("1", 36))
    with pytest.raises(ChartError, match="2 steps for 3 runs"):
        targets_of(["1", "2", "3"], [24, 36])


@pytest.mark.parametrize("steps", [(None, None), (24, 24), (24, None), (None, 36)])
@pytest.mark.parametrize("runs", [("1", "2"), ("1", "1")])
def test_a_request_is_written_so_that_it_is_read_back(runs, steps):
    targets = tuple(Target(run, step) for run, step in zip(runs, steps, strict=True))
    said = request_words(Request(targets, "scenes", "renderings"))
    assert said[-4:] == ["--dataset", "scenes", "--split", "renderings"]
    named = said[1 : said.index("--step") if "--step" in said else -4]
    at = said[said.index("--step") + 1 : -4] if "--step" in said else []
    back = targets_of(named, [None if step == "last" else int(step) for step in at])
    same_shown_twice = runs[0] == runs[1] and steps[0] == steps[1]
    assert back == (targets[:1] if same_shown_twice and steps[0] is None else targets)


@pytest.mark.slow
def test_another_chart_is_one_file(tmp_path: Path):
    """Export, numbers and help come from a plug-in file that no other file refers to."""
    (tmp_path / "run_product.py").write_text(PLUGIN)
    env = os.environ | {FILES: str(tmp_path / "run_product.py")}
    out, space = tmp_path / "product.csv", ["--workspace", str(tmp_path / "workspace")]
    commands = [
        ["export", "run-product", "--factor", "3", "--out", str(out), *space],
        ["analyze", "run-product", "--factor", "3", "--json", *space],
        ["export", "run-product", "--factor", "11", "--out", str(out), *space],
    ]
    # In a process, since this one knows already which charts there are.
    code = f"from trainer.__main__ import main; assert not any(main(line) for line in {commands})"
    done = subprocess.run(python("-c", code), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert [row["y"] for row in csv.DictReader(out.open())] == ["0.0"]
    assert json.loads(done.stdout[done.stdout.index("{") :]) == {
        "analysis": "run-product",
        "runs": [{"table": "Product", "column": "all", "Product": 0.0}],
    }
    assert "is too large: choose at most 10" in done.stderr


@pytest.mark.parametrize("name", registry.names())
def test_every_chart_states_what_it_costs_and_the_help_says_it(name: str):
    chart = registry.load(name)
    assert chart.cost.startswith(("Grows with ", "Computed from its settings alone"))
    assert chart.cost.endswith(".")
    assert chart.help_text in ("", f"{chart.method}\n\n{chart.cost}")
