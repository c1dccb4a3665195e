"""The window beside plug-ins: fields of a sound one, and a sentence about a broken one."""

import os
from pathlib import Path

import pytest

from explorer.views.runs.new_run import NewRun
from tests.explorer.widgets import add_widget
from trainer import config, plugins
from trainer.plugins import loaded_plugins

PLUGIN = Path(__file__).parents[1] / "trainer" / "plugins" / "clip_by_margin.py"


@pytest.mark.slow
def test_a_sound_one_has_form_fields_beside_a_broken_one(
    dressed, background, qtbot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.setattr(loaded_plugins, "_LOADED", loaded_plugins.LoadedPlugins())
    monkeypatch.setattr(loaded_plugins, "_DONE", set())
    monkeypatch.setenv(plugins.FILES, os.pathsep.join([str(tmp_path / "broken.py"), str(PLUGIN)]))
    for section, kinds in dict(config.SECTIONS).items():
        monkeypatch.setitem(config.SECTIONS, section, kinds)
    assert "division by zero" in plugins.load_all().failures[0]
    sheet = add_widget(qtbot, NewRun({}, background))
    run = config.replace(config.replace(config.Run(), "objective", "hinge_pairs"), "objective.margin", "0.7")
    sheet.show_run(run)
    assert sheet.run().objective == run.objective
    assert sheet.section("objective").form.editor("margin").accessibleName() == "Margin"
