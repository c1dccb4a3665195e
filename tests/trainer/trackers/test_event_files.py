"""Event files of several sessions, writers and forms: imported as TensorBoard's own readers show them."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults.test_hostile_trackers import event_file
from trainer.store import Workspace
from trainer.trackers.import_curves import ImportedRun, import_curves

pytestmark = [pytest.mark.slow]

Curves = dict[str, dict[int, float]]


def session(folder: Path, write: Callable[[Any], None], *, purge: int | None = None) -> Path:
    """Write one event file with torch, called so that it follows those before it in the folder."""
    from torch.utils.tensorboard import SummaryWriter

    before = set(folder.glob("*tfevents*"))
    with SummaryWriter(str(folder), purge_step=purge) as writer:
        write(writer)
    (file,) = set(folder.glob("*tfevents*")) - before
    return file.rename(folder / f"events.out.tfevents.{len(before):010}.vm")


def logged(steps: range, value: float, *tags: str) -> Callable[[Any], None]:
    """Return what logs the value plus a thousandth of the step at each step."""

    def write(writer: Any) -> None:
        for step in steps:
            for tag in tags or ("loss",):
                writer.add_scalar(tag, value + step / 1_000, step, walltime=1e9 + step)

    return write


def imported(folder: Path, source: Path) -> dict[str, tuple[Curves, ImportedRun]]:
    """Return name of a run -> its curves, and what was said of it."""
    workspace = Workspace(folder)
    found = {}
    for run in import_curves(workspace, source):
        names = workspace.results.scalar_names(run.id)
        series = {name: workspace.results.series(run.id, name)[:2] for name in names}
        found[run.name] = {name: dict(zip(map(int, steps), values)) for name, (steps, values) in series.items()}, run
    return found


def of_accumulator(folder: Path) -> Curves:
    """Return what TensorBoard's `EventAccumulator` keeps; of two values at a step the later."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder), {"scalars": 0}).Reload()
    tags = accumulator.Tags()["scalars"]
    found = {tag: {event.step: event.value for event in accumulator.Scalars(tag)} for tag in tags}
    return {tag: points for tag, points in found.items() if points}


def of_provider(source: Path) -> dict[str, Curves]:
    """Return the runs that the Python reader behind TensorBoard's page has."""
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.context import RequestContext

    multiplexer = EventMultiplexer(size_guidance={"tensors": 0}, tensor_size_guidance={"scalars": 0})
    multiplexer.AddRunsFromDirectory(str(source)).Reload()
    provider = MultiplexerDataProvider(multiplexer, str(source))
    runs = provider.read_scalars(RequestContext(), experiment_id="", plugin_name="scalars", downsample=10**6)
    return {
        run: {tag: {datum.step: datum.value for datum in data} for tag, data in curves.items()}
        for run, curves in runs.items()
    }


def of_data_server(source: Path) -> dict[str, Curves]:
    """Return the runs that TensorBoard's page has where its data server is installed, as it is by default."""
    from tensorboard.context import RequestContext
    from tensorboard.data.server_ingester import SubprocessServerDataIngester, get_server_binary
    from tensorboard.util.grpc_util import ChannelCredsType

    server = SubprocessServerDataIngester(
        get_server_binary(),
        str(source),
        reload_interval=0,
        channel_creds_type=ChannelCredsType.LOCAL,
        samples_per_plugin={"scalars": 0},
    )
    server.start()
    runs = server.data_provider.read_scalars(
        RequestContext(), experiment_id="", plugin_name="scalars", downsample=10**6
    )
    return {
        run: {tag: {datum.step: datum.value for datum in data} for tag, data in curves.items()}
        for run, curves in runs.items()
    }


def check(found: Curves, expected: Curves) -> None:
    assert found.keys() == expected.keys()
    for name, points in expected.items():
        assert found[name] == pytest.approx(points, rel=1e-6), name


def test_what_a_restarted_session_voids_is_gone_as_in_tensorboard(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog

    top = tmp_path / "logs"

    def restarts(writer: Any) -> None:
        logged(range(30), 1.0)(writer)
        writer.file_writer.add_event(Event(session_log=SessionLog(status=SessionLog.START)), step=20)
        logged(range(20, 30), 2.0)(writer)

    def out_of_order(writer: Any) -> None:
        for step in (0, 2, 1, 4, 3):
            writer.add_scalar("loss", step, step)

    folders: dict[str, list[tuple[int | None, Callable[[Any], None]]]] = {
        "shorter": [(None, logged(range(30), 1.0)), (20, logged(range(20, 24), 2.0))],
        "from the begin": [(None, logged(range(30), 1.0)), (0, logged(range(3), 2.0))],
        "other curve": [(None, logged(range(30), 1.0, "loss", "acc")), (20, logged(range(20, 24), 2.0))],
        "three": [(0, logged(range(9), 1.0)), (5, logged(range(5, 8), 2.0)), (3, logged(range(3, 5), 3.0))],
        "inside": [(None, restarts)],
        "out of order": [(None, out_of_order)],
    }
    for name, sessions in folders.items():
        for purge, write in sessions:
            session(top / name, write, purge=purge)
    found = imported(tmp_path / "w", top)
    for folder in top.iterdir():
        check(found[folder.name][0], of_accumulator(folder))
    assert max(found["shorter"][0]["loss"]) == 23
    assert max(found["other curve"][0]["acc"]) == 19


def unpurged(top: Path) -> None:
    """Write sessions that went back without a word."""
    for name, second in {"longer": range(20, 40), "shorter": range(20, 24), "after": range(30, 33)}.items():
        session(top / name, logged(range(30), 1.0))
        session(top / name, logged(second, 2.0))


def test_a_file_that_goes_back_voids_what_stands_there_and_later(tmp_path: Path) -> None:
    unpurged(tmp_path / "logs")
    found = imported(tmp_path / "w", tmp_path / "logs")
    assert sorted(found["longer"][0]["loss"]) == list(range(40))
    assert sorted(found["shorter"][0]["loss"]) == list(range(24))
    assert sorted(found["after"][0]["loss"]) == list(range(33))
    assert found["shorter"][0]["loss"][20] == pytest.approx(2.02, rel=1e-6)


@pytest.mark.nightly
def test_the_data_server_of_tensorboard_shows_the_same(tmp_path: Path) -> None:
    unpurged(tmp_path / "logs")
    shown = of_data_server(tmp_path / "logs")
    for name, (curves, _) in imported(tmp_path / "w", tmp_path / "logs").items():
        check(curves, shown[name])


def test_steps_that_go_back_in_an_old_file_void_their_own_curve(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event

    def event(step: int, tag: str, value: float, **more: Any) -> bytes:
        made = Event(step=step, wall_time=1e9 + step, **more)
        if tag:
            made.summary.value.add(tag=tag, simple_value=value)
        return bytes(made.SerializeToString())

    steps = [(0, "a"), (0, "b"), (5, "a"), (5, "b"), (9, "a"), (3, "a"), (4, "a"), (4, "b"), (9, "b"), (10, "a")]
    rows = [event(step, tag, float(place)) for place, (step, tag) in enumerate(steps)]
    for name, first in {"old": [], "new": [event(0, "", 0.0, file_version="brain.Event:2")]}.items():
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "events.out.tfevents.1").write_bytes(event_file(*first, *rows))
    found = imported(tmp_path / "w", tmp_path / "logs")
    for name in ("old", "new"):
        check(found[name][0], of_accumulator(tmp_path / "logs" / name))
    assert sorted(found["old"][0]["a"]) == [0, 3, 4, 10]
    assert sorted(found["new"][0]["a"]) == [0, 3, 4, 5, 9, 10]


def test_tensors_are_scalars_where_their_tag_says_so_and_others_are_counted(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.util.tensor_util import make_tensor_proto

    def event(step: int, tag: str, value: Any, plugin: str = "") -> bytes:
        made = Event(step=step, wall_time=1e9 + step)
        one = made.summary.value.add(tag=tag, tensor=make_tensor_proto(value))
        if plugin:
            one.metadata.plugin_data.plugin_name = plugin
        return bytes(made.SerializeToString())

    first = [event(0, "x", np.float64(0.1), "scalars"), event(1, "x", np.float32(2)), event(2, "x", np.int64(3))]
    first += [
        event(0, "t", "a text", "text"),
        event(0, "p", np.array([1, 2], np.float32), "pr_curves"),
        event(1, "t", "more"),
    ]
    top = tmp_path / "logs" / "run"
    top.mkdir(parents=True)
    for number, events in enumerate((first, [event(3, "x", np.float16(4)), event(3, "unknown", np.float32(1))])):
        (top / f"events.out.tfevents.{number}").write_bytes(event_file(*events))
    (found,) = imported(tmp_path / "w", tmp_path / "logs").values()
    check(found[0], of_provider(tmp_path / "logs")["run"])
    assert found[0]["x"][0] == 0.1
    assert found[1].notes == ("Left out: text (1), pr_curves (1), tensor (1), numbers that nothing calls scalars (1).",)


def test_a_damaged_record_is_left_out_and_the_share_that_was_read_is_said(tmp_path: Path) -> None:
    file = session(tmp_path / "logs", logged(range(200), 1.0))
    content = bytearray(file.read_bytes())
    spoiled = content.index(struct.pack("<f", np.float32(1.1)))
    content[spoiled] ^= 1
    file.write_bytes(bytes(content))
    (found,) = imported(tmp_path / "w", tmp_path / "logs").values()
    (python,) = of_provider(tmp_path / "logs").values()
    assert found[0]["loss"].keys() == set(range(200)) - {100}
    assert python["loss"].keys() == set(range(100)), "their Python reader ends there"
    (note,) = found[1].notes
    assert "1 part was left out" in note
    assert f"of {len(content):,} bytes (99." in note
    content[0] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(Exception, match=r"0 of [\d,]+ bytes \(0.0 %\) read"):
        import_curves(Workspace(tmp_path / "w2"), tmp_path / "logs")


def test_what_add_scalars_and_add_hparams_write_is_one_run_with_its_settings(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    for name in ("one", "two"):
        with SummaryWriter(str(tmp_path / "logs" / name)) as writer:
            for step in range(3):
                writer.add_scalar("loss", step, step)
                writer.add_scalars("train/acc", {"A": step, "B_c": 2 * step}, step)
            writer.add_hparams({"lr": 0.1, "batch": 8, "name": name}, {"loss": 0.5, "hparam/acc": 0.25})
    session(tmp_path / "logs" / "two" / "other run", logged(range(2), 1.0))
    shown = of_provider(tmp_path / "logs")
    assert len(shown) == 2 * 4 + 1, "each folder is a run of theirs"
    workspace = Workspace(tmp_path / "w")
    found = imported(tmp_path / "w", tmp_path / "logs")
    assert sorted(found) == ["one", "two", "two-other run"]
    for name in ("one", "two"):
        curves, run = found[name]
        check({tag: curves[tag] for tag in ("loss",)}, shown[name])
        check({"train/acc": curves["train/acc/A"]}, shown[f"{name}/train_acc_A"])
        check({"train/acc": curves["train/acc/B_c"]}, shown[f"{name}/train_acc_B_c"])
        assert (curves["hparams/loss"], curves["hparam/acc"]) == ({0: 0.5}, {0: 0.25})
        settings = workspace.runs.get(run.id).facts["imported_settings"]
        assert settings == {"lr": "0.1", "batch": "8", "name": name}
        assert "3 folders that add_scalars or add_hparams wrote" in " ".join(run.notes)


def test_folders_behind_links_are_read_once(tmp_path: Path) -> None:
    session(tmp_path / "elsewhere" / "deep", logged(range(4), 1.0))
    session(tmp_path / "logs" / "here", logged(range(3), 1.0))
    (tmp_path / "logs" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "logs" / "latest").symlink_to(tmp_path / "logs" / "here")
    (tmp_path / "elsewhere" / "loop").symlink_to(tmp_path / "logs")
    assert sorted(imported(tmp_path / "w", tmp_path / "logs")) == ["here", "linked-deep"]
