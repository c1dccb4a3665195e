"""What `pytest --changed` runs."""

import pytest

from tests import changed, processor_time


def test_a_chart_leads_to_its_tests_and_not_to_all() -> None:
    distance = changed.distances(["trainer/charts/gap.py"])
    assert distance["tests/trainer/charts/test_gap.py"] == 0
    assert "tests/trainer/losses/test_info_loob.py" not in distance


def test_helpers_texts_and_fixtures_lead_to_who_uses_them() -> None:
    distance = changed.distances(
        ["tests/nightly.py", "assets/presets/clip-scenes.toml", "tests/trainer/losses/conftest.py"]
    )
    assert distance["tests/trainer/render_mpl/test_demo.py"] == 0
    assert distance["tests/trainer/losses/test_info_loob.py"] <= 1
    assert distance.get("tests/explorer/test_viridis.py") is None


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from trainer.charts import hubness", "trainer.charts.hubness"),
        ("def test():\n    import trainer.analysis.umap", "trainer.analysis.umap"),
        ("patch.setattr('trainer.projection.fitting.umap_layout', f)", "trainer.projection.fitting.umap_layout"),
        ("from trainer.__main__ import main\nmain(['data-efficiency'])", "trainer.cli.data_efficiency"),
    ],
)
def test_what_a_test_names_is_used(source: str, module: str) -> None:
    assert module in changed.modules_used(source, {"trainer.cli.data_efficiency": 0})


def test_the_nearest_come_first_and_the_rest_is_told(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    near = {"tests/trainer/store/test_run_log.py": 1, "tests/trainer/store/test_moved.py": 1, "tests/tolerances.py": 0}
    monkeypatch.setattr(changed, "changed_files", lambda since: ["trainer/store/run_log.py"])
    monkeypatch.setattr(changed, "distances", lambda files: near)
    monkeypatch.setattr(processor_time, "seconds_by_file", lambda config: dict.fromkeys(near, 5.0))
    chosen = changed.select(pytestconfig, "main", 10.0)
    assert chosen.files == ("tests/tolerances.py", "tests/trainer/store/test_run_log.py")
    assert chosen.left == 1
    assert "more files may be affected" in chosen.sentence
