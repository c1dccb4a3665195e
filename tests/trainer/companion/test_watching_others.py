"""The curves of a person's own program are watched while they grow, at the steps that its files count."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.__main__ import main
from trainer.companion.folder_watch import FolderWatch, watched_run
from trainer.companion.watching_files import watched_folder
from trainer.store import Workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "ws")


def series(workspace: Workspace, name: str) -> list[tuple[int, float]]:
    steps, values, _ = workspace.results.series(1, name)
    return [*zip(steps.tolist(), values.tolist(), strict=True)]


def watching(workspace: Workspace, path: Path) -> Iterator[FolderWatch]:
    """Yield the same watch again, after it has brought in all that is new."""
    folder = watched_folder(path)
    with watched_run(workspace, folder, name="", dataset="") as log:
        watch = FolderWatch(workspace, log, folder, None)
        while True:
            while watch.look():
                pass
            yield watch


def test_event_files_alone_are_no_training_of_lightning(workspace: Workspace, tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "out" / "tb")) as writer:
        looks = watching(workspace, tmp_path / "out")
        for step in (0, 64, 128, 192):
            writer.add_scalar("loss", 1 / (1 + step), step)
            writer.flush()
            next(looks)
            peer = accumulators.EventAccumulator(str(tmp_path / "out" / "tb")).Reload()
            assert series(workspace, "loss") == [(event.step, event.value) for event in peer.Scalars("loss")]
    looks.close()
    row = workspace.runs.get(1)
    assert (row.name, row.step) == ("out", 192)
    assert watched_folder(tmp_path / "out").description == "the curves of a training (TensorBoard)"


def test_a_table_grows_line_by_line_and_may_begin_anew(workspace: Workspace, tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text("step,loss\n0,2.0\n10,1.5\n")
    looks = watching(workspace, table)
    next(looks)
    with table.open("a") as file:
        file.write("20,1.2")
    next(looks)
    assert series(workspace, "loss") == [(0, 2.0), (10, 1.5)]
    with table.open("a") as file:
        file.write("5\n")
    next(looks)
    assert series(workspace, "loss")[-1] == (20, 1.25)
    table.write_text("step,loss\n0,3.0\n")
    next(looks)
    assert series(workspace, "loss") == [(0, 3.0)]
    looks.close()


def test_a_table_beside_settings_of_lightning_counts_from_zero(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("epoch,step,train_loss\n0,3,2.5\n")
    assert watched_folder(tmp_path).program == "log"
    (tmp_path / "hparams.yaml").write_text("{}\n")
    looks = watching(workspace, tmp_path / "metrics.csv")
    next(looks)
    looks.close()
    assert series(workspace, "train/loss") == [(4, 2.5)]


def test_one_look_at_a_log_that_grows_is_enough(workspace: Workspace, tmp_path: Path, monkeypatch) -> None:
    table, look = tmp_path / "log.csv", FolderWatch.look
    table.write_text("step,loss\n0,2.0\n")

    def growing(watch: FolderWatch) -> bool:
        with table.open("a") as file:
            file.write(f"{watch.step + 1},1.0\n")
        return look(watch)

    monkeypatch.setattr(FolderWatch, "look", growing)
    assert main(["watch", str(table), "--once", "--workspace", str(workspace.folder)]) == 0
    assert series(workspace, "loss") == [(0, 2.0), (1, 1.0)]


def test_several_trainings_and_pairs_are_refused(workspace: Workspace, tmp_path: Path, capsys) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.csv").write_text("step,loss\n0,2.0\n10,1.5\n")
    command = ["watch", "--once", "--workspace", str(tmp_path / "ws")]
    assert main([*command, str(tmp_path)]) == 2
    assert "the curves of 2 trainings: a, b. Name the folder or the file of one" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "a"), "--data", "pairs.csv"]) == 2
    assert "watch it without --data" in capsys.readouterr().err
    assert not workspace.runs.all()
    assert main([*command, str(tmp_path / "a")]) == 0
    assert "a, the curves of a training (training log)" in capsys.readouterr().out
