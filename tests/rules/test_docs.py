"""The READMEs mention everything that exists, and nothing that does not."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import trainer.cli
from explorer.views import VIEWS
from tests.benchmarks.__main__ import NAMES
from tests.benchmarks.__main__ import main as measure
from trainer import config
from trainer.__main__ import main

ROOT = Path(__file__).parents[2]
READMES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "explorer/README.md",
    "trainer/README.md",
    "tests/benchmarks/README.md",
    "tests/faults/README.md",
    "packaging/README.md",
)
FOLDERS = ("trainer/", "explorer/", "tests/", "assets/", "packaging/", ".ci/")
COMMANDS = tuple(
    module.name.replace("_", "-") for module in pkgutil.iter_modules(trainer.cli.__path__) if module.name[0] != "_"
)


@pytest.mark.parametrize("readme", READMES)
def test_every_file_a_readme_points_to_is_there(readme: str):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert ((ROOT / readme).parent / target).exists(), f"{readme} points to {target}"


@pytest.mark.parametrize("readme", READMES)
def test_every_heading_a_readme_points_to_is_there(readme: str):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
        file = (ROOT / readme).parent / target if target else ROOT / readme
        headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{readme} points to {target}#{anchor}"


@pytest.mark.parametrize("readme", READMES)
def test_every_path_a_readme_names_is_there(readme: str):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for name in re.findall(r"`([\w./-]+/[\w./-]*)`", text):
        if name.startswith(FOLDERS) and "NAME" not in name:
            assert (ROOT / name).exists(), f"{readme} names {name}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 160


def test_every_command_in_a_readme_exists():
    for readme in READMES:
        text = (ROOT / readme).read_text(encoding="utf-8")
        for name in re.findall(r"`(?:uv run )?trainer ([a-z]+)", text):
            assert name in COMMANDS, f"{readme} names trainer {name}"


def test_every_benchmark_that_is_named_exists():
    assert set(NAMES) == {
        path.stem for path in (ROOT / "tests/benchmarks").glob("*.py") if "HELP = " in path.read_text()
    }
    for readme in READMES:
        text = (ROOT / readme).read_text(encoding="utf-8")
        for name in re.findall(r"tests\.benchmarks ([a-z_]+)", text):
            assert name in NAMES, f"{readme} names the benchmark {name}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        measure([name, "--help"])
    assert ended.value.code == 0
    assert "usage: python -m tests.benchmarks" in capsys.readouterr().out


def test_every_view_is_in_the_explorers_readme():
    text = (ROOT / "explorer/README.md").read_text(encoding="utf-8")
    assert [p.name for p in VIEWS if f"`{p.name}/`" not in text and f"`{p.name}.py`" not in text] == []


def test_every_objective_is_in_the_trainers_readme():
    text = (ROOT / "trainer/README.md").read_text(encoding="utf-8")
    assert [kind.kind for kind in config.choices(config.Objective) if f"`{kind.kind}`" not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: trainer {command}" in capsys.readouterr().out


def test_ci_runs_what_the_readme_says():
    """`.ci/run` takes its lines from the README, so they must be where it expects them."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("uv run pytest") for line in lines)
    assert any(re.match(r"(sudo )?apt-get install ", line) for line in lines)


def test_no_uv_lock_is_kept():
    assert "uv.lock" in (ROOT / ".gitignore").read_text().splitlines()


def test_floors_that_security_needs():
    """The oldest versions without a known hole."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["train"]]
    floors = dict(re.match(r"([a-z0-9-]+)>=([0-9.]+)", line).groups() for line in lines if ">=" in line)
    assert tuple(map(int, floors["torch"].split("."))) >= (2, 10)
    assert tuple(map(int, floors["pillow"].split("."))) >= (12, 1, 1)
    assert tuple(map(int, floors["pyarrow"].split("."))) >= (14, 0, 1)
