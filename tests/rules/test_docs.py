"""The READMEs mention everything that exists, and nothing that does not."""

import importlib.util
import pkgutil
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import trainer.cli
from explorer.views import VIEWS
from tests.benchmarks.__main__ import NAMES
from tests.benchmarks.__main__ import main as measure
from tests.nightly import few_plain
from trainer.__main__ import main, parse
from trainer.errors import UserError

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
DOCS = ROOT / "assets" / "docs"
PAGES = tuple(str(file.relative_to(ROOT)) for file in sorted(DOCS.rglob("*.md")))
FOLDERS = ("trainer/", "explorer/", "tests/", "assets/", "packaging/", ".ci/")
COMMANDS = tuple(
    module.name.replace("_", "-") for module in pkgutil.iter_modules(trainer.cli.__path__) if module.name[0] != "_"
)


@pytest.mark.parametrize("readme", [*READMES, *PAGES])
def test_every_file_a_readme_points_to_is_there(readme: str):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert ((ROOT / readme).parent / target).exists(), f"{readme} points to {target}"


@pytest.mark.parametrize("readme", [*READMES, *PAGES])
def test_every_heading_a_readme_points_to_is_there(readme: str):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
        file = (ROOT / readme).parent / target if target else ROOT / readme
        headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{readme} points to {target}#{anchor}"


@pytest.mark.parametrize("readme", [*READMES, *PAGES])
def test_every_path_a_readme_names_is_there(readme: str):
    text = (ROOT / readme).read_text(encoding="utf-8")
    for name in re.findall(r"`([\w./-]+/[\w./-]*)`", text):
        if name.startswith(FOLDERS) and "NAME" not in name:
            assert (ROOT / name).exists(), f"{readme} names {name}"


@pytest.mark.parametrize(
    ("readme", "most"), [("README.md", 120), ("trainer/README.md", 80), ("explorer/README.md", 80)]
)
def test_readmes_are_short(readme: str, most: int):
    assert len((ROOT / readme).read_text(encoding="utf-8").splitlines()) <= most


def test_every_command_in_a_readme_exists():
    for readme in (*READMES, *PAGES):
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
@few_plain(3, "name", NAMES)
def test_every_benchmark_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        measure([name, "--help"])
    assert ended.value.code == 0
    assert "usage: python -m tests.benchmarks" in capsys.readouterr().out


def test_every_view_is_in_the_explorers_readme():
    text = (ROOT / "explorer/README.md").read_text(encoding="utf-8")
    assert [p.name for p in VIEWS if f"`{p.name}/`" not in text and f"`{p.name}.py`" not in text] == []


def commands_in(page: str) -> list[str]:
    """Return the lines of the page's shell examples that call the trainer."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = (line.removeprefix("uv run ") for block in blocks for line in block.splitlines())
    return [line for line in lines if line.startswith("trainer ")]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if commands_in(page)])
def test_every_shell_example_is_a_command_with_its_options(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for line in commands_in(page):
        words = shlex.split(line.replace("...", ""), comments=True)[1:]
        try:
            parse(words)
        except (SystemExit, UserError) as error:
            pytest.fail(f"{page}: {line}: {error}")


def sentences(text: str) -> list[int]:
    """Return the words of each sentence of a page, without its tables, headings and examples."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", "!", ":::"))]
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "X", "\n".join(lines)))
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    ends = (re.split(r"(?<=[.?!:;])\s+", " ".join(block.split())) for block in blocks)
    return [count for block in ends for part in block if (count := len(re.findall(r"[\w'’-]+", part)))]


def test_sentences_of_the_documentation_are_short():
    """A sentence has at most 30 words in nine of ten; pages of measurements are tables with notes."""
    written = [page for page in PAGES if "reference/commands" not in page and "reference/objectives" not in page]
    counts = sorted(count for page in written for count in sentences((ROOT / page).read_text(encoding="utf-8")))
    assert counts[int(0.9 * len(counts))] <= 30


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="later versions of argparse write usages otherwise")
def test_generated_pages_are_what_the_code_says():
    """`python packaging/documentation.py` writes them."""
    spec = importlib.util.spec_from_file_location("documentation", ROOT / "packaging" / "documentation.py")
    assert spec is not None
    assert spec.loader is not None
    documentation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(documentation)
    assert documentation.outdated() == []


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "packaging" / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(str(Path(page).relative_to("assets/docs")) for page in PAGES)


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
