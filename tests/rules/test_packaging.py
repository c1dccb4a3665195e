"""What a desktop reads of the application: valid where the validators are installed, and equal to the project."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ElementTree
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DESKTOP = ROOT / "packaging" / "contrastive-explorer.desktop"
(METAINFO,) = (ROOT / "packaging").glob("*.metainfo.xml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["desktop-file-validate", str(DESKTOP)], ["appstreamcli", "validate", "--no-net", str(METAINFO)]]
)
def test_the_validators_have_nothing_to_say(command: list[str]):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_desktop_starts_what_the_wheel_installs():
    entry = ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment,method-assign]
    entry.read(DESKTOP, encoding="utf-8")
    values = entry["Desktop Entry"]
    assert values["Exec"].split()[0] in PROJECT["gui-scripts"]
    assert (ROOT / "assets" / "icons" / f"{values['Icon']}.svg").is_file()


def test_the_metainfo_is_of_this_version_license_and_entry():
    root = ElementTree.parse(METAINFO).getroot()
    assert root.findtext("project_license") == PROJECT["license"]
    assert root.find("releases/release").get("version") == PROJECT["version"]
    assert root.findtext("launchable") == DESKTOP.name
    binaries = {one.text for one in root.findall("provides/binary")}
    assert binaries <= PROJECT["gui-scripts"].keys() | PROJECT["scripts"].keys()


def test_the_workflow_runs_three_systems_and_three_pythons():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert all(system in text for system in ("ubuntu-", "windows-", "macos-"))
    assert all(f'"3.{minor}"' in text for minor in (11, 12, 13))
    assert ".ci/run" in text
