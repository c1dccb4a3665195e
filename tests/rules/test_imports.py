"""The import contracts hold, and each of them can fail: a planted violation breaks its contract."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

PLANTED = [
    ("trainer/store/planted.py", "import PySide6.QtCore", "no-window-in-trainer"),
    ("trainer/config/run.py", "def late():\n    import explorer.theme", "no-window-in-trainer"),
    ("explorer/run_control/jobs.py", "import torch", "no-torch-in-explorer"),
    ("explorer/views/planted.py", "def late():\n    import trainer.training.fit", "no-torch-in-explorer"),
    ("trainer/analysis/planted.py", "import torch", "shelf-without-torch"),
    ("trainer/charts/planted.py", "def late():\n    import trainer.losses", "shelf-without-torch"),
    ("explorer/views/planted.py", "import trainer.data", "explorer-takes-from-shelf"),
    ("trainer/losses/planted.py", "import trainer.store", "pure-mathematics"),
    ("trainer/analysis/planted.py", "import sqlalchemy", "pure-mathematics"),
    ("explorer/widgets/planted.py", "import explorer.state.selection", "explorer-layers"),
    ("explorer/models/planted.py", "import explorer.views", "explorer-layers"),
    ("explorer/unplaced.py", "", "explorer-layers"),
    ("explorer/theme/planted.py", "import explorer.thumbnails", "explorer-layers"),
    ("explorer/import_sheet/planted.py", "def late():\n    import explorer.window", "explorer-layers"),
    ("explorer/event_loop/mailbox.py", "import explorer.event_loop.background", "event-loop-layers"),
    ("trainer/config/run.py", "def late():\n    import trainer.store", "trainer-layers"),
    ("trainer/losses/planted.py", "import trainer.training.fit", "trainer-layers"),
    ("trainer/unplaced.py", "", "trainer-layers"),
    ("trainer/training/session.py", "import trainer.training.metric_logger", "training-layers"),
    ("trainer/training/unplaced.py", "", "training-layers"),
    ("trainer/inference/embed.py", "def late():\n    import trainer.inference.model_cache", "inference-layers"),
    ("trainer/scheduling/launch.py", "import trainer.scheduling.queue", "scheduling-layers"),
    ("trainer/places/source.py", "import trainer.places.run_mirror", "places-layers"),
    ("trainer/places/planted.py", "def late():\n    import torch", "shelf-without-torch"),
    ("trainer/companion/planted.py", "def late():\n    import torch", "shelf-without-torch"),
    ("trainer/companion/run_logger.py", "import trainer.models", "trainer-layers"),
    ("trainer/untrusted/files.py", "import trainer.untrusted.bounded", "untrusted-layers"),
]


def lint(folder: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    """Run the contracts in `folder`'s own pyproject.toml on `folder`'s own packages."""
    only = [word for contract in contracts for word in ("--contract", contract)]
    call = "import sys; sys.path.insert(0, ''); from importlinter.cli import lint_imports_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", call, "--no-cache", *only], cwd=folder, capture_output=True, text=True, check=False
    )


def test_contracts_hold():
    outcome = lint(ROOT)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Plant all violations in one copy and return contract -> what is reported under its name."""
    copy = tmp_path_factory.mktemp("planted")
    for package in ("explorer", "trainer"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for file, line, _ in PLANTED:
        with (copy / file).open("a", encoding="utf-8") as target:
            target.write(f"\n{line}\n")
    outcome = lint(copy)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    report = outcome.stdout.partition("Broken contracts")[2]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    names = {contract["id"]: f"\n{contract['name']}\n" for contract in settings["contracts"]}
    starts = sorted(report.index(name) for name in names.values() if name in report)
    ends = dict(zip(starts, [*starts[1:], len(report)], strict=True))
    return {one: report[at : ends[at]] for one, name in names.items() if (at := report.find(name)) >= 0}


@pytest.mark.parametrize(("file", "line", "contract"), PLANTED)
def test_planted_violation_is_caught(broken: dict[str, str], file: str, line: str, contract: str):
    importer = file.removesuffix(".py").replace("/", ".")
    imported = line.rpartition("import ")[2]
    if not imported.startswith(("explorer", "trainer")):
        imported = imported.partition(".")[0]
    # A module without a place among the layers is named itself.
    assert f"{importer} -> {imported} (l." in broken[contract] if line else importer in broken[contract]
