"""The wheel in an empty environment: the window without torch, and what installs it, offline."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.trainer.distribution.wheels import tiny_wheels

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1_200)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of programs of a new environment that holds the wheel and nothing of this one."""
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(["uv", "build", "--wheel", "--quiet", "--out-dir", folder, ROOT], check=True)
    subprocess.run(["uv", "venv", "--quiet", folder / "venv"], check=True)
    (wheel,) = folder.glob("*.whl")
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", python / "python", wheel], check=True)
    return python


def told(programs: Path, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    place = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "QT_QPA_PLATFORM": "offscreen"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    command = [programs / words[0], *words[1:], "--workspace", tmp_path / "ws"]
    return subprocess.run(command, env=environment | place, capture_output=True, text=True, timeout=600, cwd=tmp_path)


def test_it_works_without_torch_and_brings_it_from_a_folder(programs: Path, tmp_path: Path):
    listed = told(programs, tmp_path, "trainer", "doctor", "--json")
    assert listed.returncode == 0, listed.stderr
    found = {one["name"]: one for one in json.loads(listed.stdout)}
    assert found["torch"]["state"] == "note"
    assert not [one for one in found.values() if one["state"] == "broken"]
    refused = told(programs, tmp_path, "trainer", "fit", "--preset", "clip-scenes")
    assert refused.returncode == 2
    assert refused.stderr.strip().endswith("Install it: trainer install")
    plan = json.loads(told(programs, tmp_path, "trainer", "install", "--plan", "--json").stdout)
    assert not plan["private"]
    assert plan["download_gb"] > 0
    wheels = tiny_wheels(tmp_path / "wheels")
    installed = told(programs, tmp_path, "trainer", "install", "--wheels", str(wheels))
    assert installed.returncode == 0, installed.stderr
    again = told(programs, tmp_path, "trainer", "install")
    assert "nothing was changed" in again.stdout
