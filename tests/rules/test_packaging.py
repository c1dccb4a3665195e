"""What a desktop reads of the application: valid where the validators are installed, and equal to the project."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from configparser import ConfigParser
from pathlib import Path

import pytest

from trainer.config.default_paths import DATABASE

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
DESKTOP = PACKAGING / "contrastive-explorer.desktop"
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


def test_the_file_types_are_those_of_the_entry_and_of_what_the_program_writes():
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    types = ElementTree.parse(PACKAGING / "contrastive-explorer.mime.xml").getroot().findall(f"{space}mime-type")
    globs = {one.get("type"): one.find(f"{space}glob").get("pattern") for one in types}
    assert set(globs.values()) == {DATABASE}
    text = DESKTOP.read_text(encoding="utf-8")
    assert all(f"{name};" in text and name in METAINFO.read_text(encoding="utf-8") for name in globs)


def test_the_flatpak_is_of_this_application():
    manifest = json.loads((PACKAGING / "flatpak" / f"{METAINFO.name.removesuffix('.metainfo.xml')}.json").read_text())
    assert manifest["id"] == ElementTree.parse(METAINFO).getroot().findtext("id")
    assert manifest["command"] in PROJECT["gui-scripts"]
    steps = " ".join(manifest["modules"][0]["build-commands"])
    named = [part for part in steps.split() if part.startswith(("packaging/", "assets/"))]
    assert named
    assert all((ROOT / name).is_file() for name in named)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["macos/make_app.sh", "run/install.sh", "run/uninstall.sh", "debian/prerm"])
def test_a_shell_reads_the_scripts(script: str):
    if shutil.which("sh") is None:
        pytest.skip("there is no sh")
    assert subprocess.run(["sh", "-n", str(PACKAGING / script)], capture_output=True).stderr == b""


@pytest.mark.slow
def test_a_packed_python_runs_from_anywhere_with_its_own_libraries(tmp_path: Path):
    if sys.platform != "linux" or shutil.which("patchelf") is None:
        pytest.skip("there is no patchelf")
    spec = importlib.util.spec_from_file_location("packaging_build", PACKAGING / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    build.own_python(Path(sys.base_prefix), tmp_path / "made")
    moved = (tmp_path / "made").rename(tmp_path / "moved")
    code = (
        "import ssl, sqlite3, ctypes, lzma, sys; print(sys.prefix);"
        "print(*(line.split()[-1] for line in open('/proc/self/maps') if '.so' in line), sep='\\n')"
    )
    command = [str(moved / "bin" / "python3"), "-I", "-c", code]
    prefix, *libraries = subprocess.run(command, env={}, capture_output=True, text=True, check=True).stdout.split()
    assert prefix == str(moved)
    foreign = {Path(one).name for one in libraries if not one.startswith(str(moved))}
    assert {name for name in foreign if not re.match(build.SYSTEM_LIBRARIES, name)} == set()


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
