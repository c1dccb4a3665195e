"""Each cost is measured on the same vectors, and the table has a line for each."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks import other_programs, scale_of_data
from tests.benchmarks.other_programs import measured
from tests.benchmarks.scale_of_data import MEASURES, made, once, table

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["mixture", "manifold"])
def test_pairs_are_nearer_than_others(tmp_path: Path, kind: str):
    made(tmp_path, 200, 32, kind)
    image, text = (scale_of_data._Data(tmp_path).side(side) for side in ("image", "text"))
    assert image.dtype == np.float32
    assert np.mean((image @ text.T).argmax(axis=1) == np.arange(200)) > 0.2


def test_the_table_says_time_memory_and_growth(tmp_path: Path):
    made(tmp_path, 300, 16, "mixture")
    names = ("open", "bare product", "exact ranks both ways, margins", "near duplicates", "chart changes")
    text = table({name: {300: once(name, tmp_path)} for name in names})
    assert "| what | grows with | 300 pairs | note |" in text
    assert "| exact ranks both ways, margins | n^2 | " in text
    assert set(names) < set(MEASURES)


def test_a_command_is_measured_with_its_children_and_a_server_until_it_answers(tmp_path: Path):
    child, spent = tmp_path / "child.py", tmp_path / "spent"
    work = f"sum(i * i for i in range(3_000_000)); open({str(spent)!r}, 'w').write(str(time.process_time()))"
    child.write_text(f"import time; {work}")
    code = f"import subprocess, sys; subprocess.run([sys.executable, {str(child)!r}], check=True)"
    took = measured([sys.executable, "-c", code], tmp_path)
    assert took["cpu_s"] > float(spent.read_text()) - 0.06, "what its child computed is among it, in tenths"
    assert took["peak_mb"] > 5
    marker = tmp_path / "ready"
    took = measured([sys.executable, "-c", "open('ready', 'w'); import time; time.sleep(999)"], tmp_path, marker.exists)
    assert took["wall_s"] < 900
    for code, words in (("raise SystemExit('no vectors')", "no vectors"), ("import time; time.sleep(99)", "0.5 s")):
        why = measured([sys.executable, "-c", code], tmp_path, most_s=0.5 if "sleep" in code else 99)["why"]
        assert words in why
    assert "| it | - | - | - | because |" in other_programs.table({"it": {"why": "because"}})
