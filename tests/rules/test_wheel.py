"""The contents of the wheel: the two packages, without benchmarks and tests."""

from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def files() -> set[str]:
    """Return the paths in the wheel, as hatchling would pack them."""
    builder = WheelBuilder(str(ROOT))
    packed = (*builder.recurse_included_files(), *builder.recurse_forced_files(builder.config.get_force_include()))
    return {Path(file.distribution_path).as_posix() for file in packed}


def test_the_wheel_holds_the_packages_and_the_assets(files: set[str]):
    assert {path.split("/")[0] for path in files} == {"explorer", "trainer"}
    assert {"explorer/__main__.py", "trainer/__main__.py", "trainer/assets/prompts/imagenet.json"} <= files


def test_every_asset_that_no_readme_shows_is_in_the_wheel(files: set[str]):
    there = {one.relative_to(ROOT).as_posix() for one in (ROOT / "assets").rglob("*") if one.is_file()}
    pictures = {one for one in there if one.startswith("assets/docs/screenshots/")}
    assert pictures
    assert {f"trainer/{one}" for one in there - pictures} <= files
    assert not {f"trainer/{one}" for one in pictures} & files


def test_the_wheel_holds_no_benchmark_and_no_test(files: set[str]):
    tools = {"bench", "benchmarks", "tests", "faults", "conftest.py", "window_soak.py", "many_runs.py"}
    assert [path for path in files if tools & set(path.split("/"))] == []
    assert [path for path in files if Path(path).name.startswith("test_")] == []
