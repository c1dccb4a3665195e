"""The study of binding is a definition that the application takes, and its outcome is what caption choice stores."""

from pathlib import Path

from trainer.analysis.caption_swaps import KINDS
from trainer.experiments.experiment import read

PAGE = Path(__file__).resolve().parents[3] / "assets" / "docs" / "measurements" / "binding.md"


def test_the_study_of_the_page_compares_four_objectives_over_five_seeds(tmp_path: Path):
    file = tmp_path / "binding.toml"
    file.write_text(PAGE.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0], encoding="utf-8")
    study = read(file)
    assert [arm.run.objective.kind for arm in study.arms] == ["clip", "cloob", "dhn_nce", "siglip"]
    assert (study.least_seeds, study.most_seeds) == (5, 5)
    assert (study.outcome.metric, study.outcome.split) == ("caption_choice", "combinations")
    assert [outcome.metric for outcome in study.secondaries] == [f"caption_choice_{kind}" for kind in KINDS]
    configurations = {repr(arm.run.data) for arm in study.arms}
    assert len(configurations) == 1, "every arm learns from the same pairs"
