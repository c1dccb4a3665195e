"""Images decoded again in every epoch: the same pixels, batches and losses as from the prepared cache."""

import dataclasses
import io
import json
import tarfile
import threading
import time
from collections import namedtuple
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from tests.builders import add_members
from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.data import DataError, DataSplits, load, prepared
from trainer.data.batch_stream import BatchStream
from trainer.data.content import matching_of, pixel_digests
from trainer.data.order import batches
from trainer.data.streamed_images import StreamedImages, pictures_ahead
from trainer.data.tokenizer import train_tokenizer
from trainer.images import read_pictures
from trainer.store import RunLog, Workspace
from trainer.store.disk import SPARE
from trainer.training.fit import fit
from trainer.training.session import TrainingSession, Update

pytestmark = pytest.mark.slow

SIZE = 32
COUNT = 40
HELPER: Final = "trainer.images.helper"


def png(number: int) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 255, (SIZE + 8, SIZE + 3, 3), np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def folder(root: Path) -> config.Folder:
    for number in range(COUNT):
        (root / f"{number:02}.png").write_bytes(png(number))
        (root / f"{number:02}.txt").write_text(f"picture {number}", encoding="utf-8")
    return config.Folder(path=str(root))


def class_folder(root: Path) -> config.ClassFolder:
    for number in range(COUNT):
        place = root / f"class {number % 4}" / f"{number:02}.png"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(png(number))
    return config.ClassFolder(path=str(root))


def table(root: Path) -> config.Table:
    folder(root)
    lines = [json.dumps({"filepath": f"{number:02}.png", "title": f"picture {number}"}) for number in range(COUNT)]
    (root / "pairs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return config.Table(path=str(root / "pairs.jsonl"))


def tars(root: Path) -> config.Shards:
    for shard in range(2):
        with tarfile.open(root / f"{shard}.tar", "w") as archive:
            for number in range(shard, COUNT, 2):
                add_members(archive, ((f"{number:02}.png", png(number)), (f"{number:02}.txt", b"picture %d" % number)))
    return config.Shards(path=str(root))


def parquet(root: Path) -> config.Table:
    columns = {"filepath": [png(n) for n in range(COUNT)], "title": [f"picture {n}" for n in range(COUNT)]}
    pq.write_table(pa.table(columns), root / "pairs.parquet", row_group_size=7)
    return config.Table(path=str(root / "pairs.parquet"))


KINDS = {"folder": folder, "classes": class_folder, "table": table, "tars": tars, "parquet": parquet}


def read(data: config.Data, workspace: Path, loading: str) -> DataSplits:
    quiet = lambda share, note: None  # noqa: E731
    return load(data, image_size=SIZE, workspace_folder=workspace, progress=quiet, loading=loading)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_a_clock_that_is_days_ahead_removes_no_cache_that_is_in_use(root: Path, tmp_path: Path, monkeypatch) -> None:
    now = time.time
    monkeypatch.setattr(prepared.time, "time", lambda: now() + 90 * 86_400)
    assert isinstance(read(KINDS["table"](root), tmp_path / "kept", "prepared").train.images, np.memmap)


@pytest.mark.parametrize("kind", nightly_except(KINDS, "table", "tars"))
def test_streamed_images_are_those_of_the_cache(kind: str, root: Path, tmp_path: Path) -> None:
    data = KINDS[kind](root)
    streamed = read(data, tmp_path / "streamed", "streamed").train
    kept = read(data, tmp_path / "kept", "prepared").train
    assert isinstance(streamed.images, StreamedImages)
    assert isinstance(kept.images, np.memmap)
    assert streamed.images.shape == kept.images.shape
    assert (np.asarray(streamed.images) == kept.images).all()
    assert dataclasses.replace(streamed, images=None) == dataclasses.replace(kept, images=None)
    # Nothing of the size of the images is kept of those.
    assert len(list((tmp_path / "streamed" / "cache").glob("*/images.npy"))) == len(["held-out ones"])


def test_any_way_to_ask_for_rows_is_that_of_an_array(root: Path, tmp_path: Path) -> None:
    streamed = read(folder(root), tmp_path / "streamed", "streamed").train
    kept = read(folder(root), tmp_path / "kept", "prepared").train.images
    images = streamed.images
    mask = np.arange(len(kept)) % 3 == 0
    for key in (3, -1, slice(2, 9), slice(None, None, 5), np.array([4, 1, 4]), [2, 3], mask, np.array([], int)):
        assert (images[key] == kept[key]).all()
        assert images[key].shape == kept[key].shape
    assert (np.stack(list(images)) == kept).all()
    assert (streamed.part(np.array([5, 2]), split="x").images == kept[[5, 2]]).all()
    with pytest.raises(IndexError):
        images[len(kept)]


def run_of(data: config.Data, **changes: object) -> config.Run:
    run = config.replace(config.Run(), "model.image_size", str(SIZE))
    optimizer = dataclasses.replace(run.optimizer, batch_size=8, epochs=3, crop_scale=0.5)
    return dataclasses.replace(run, data=data, optimizer=optimizer, seed=3, **changes)


def training_of(run: config.Run, splits: DataSplits) -> TrainingSession:
    tokenizer = train_tokenizer([f"picture {number}" for number in range(COUNT)], 300)
    return TrainingSession(run, splits.train, tokenizer, torch.device("cpu"))


def losses(training: TrainingSession, count: int) -> list[float]:
    return [training.update().loss for _ in range(count)]


def test_the_losses_are_those_of_the_cache_whatever_the_number_of_workers(root: Path, tmp_path: Path) -> None:
    data = folder(root)
    (root / "07.png").write_bytes(png(7)[:90])  # damaged from the start: left out by both
    expected = losses(training_of(run_of(data), read(data, tmp_path, "prepared")), 7)
    splits = read(data, tmp_path / "streamed", "streamed")
    assert [place for place, _ in splits.report.problems] == ["07.png"]
    assert splits.report.used == COUNT - 1
    training = training_of(run_of(data, workers=2), splits)  # the other tests have one
    assert losses(training, 7) == expected
    assert training.news() == []
    training.end()


@pytest.mark.parametrize("way", ["auto", "streamed"])
def test_a_run_that_is_stopped_and_resumed_ends_with_the_weights_of_one_from_the_cache(
    way: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With "auto" the pictures are many: the run begins before they are prepared, and goes on from the cache."""
    monkeypatch.setattr("trainer.device.be_polite", lambda where: None)
    if way == "auto":
        monkeypatch.setattr("trainer.training.session.FEW_PREPARED_FIRST", 10)
    base = run_of(folder(root), workers=1, device="cpu")
    watching = dataclasses.replace(base.watching, snapshots=2, log_every=1, evaluate_every=1000)
    workspace = Workspace(tmp_path / "workspace")

    def trained(loading: str, *, stop_at: int = 0) -> tuple[bytes, list[float]]:
        run = dataclasses.replace(base, name=loading, loading=loading, watching=watching)
        number = workspace.runs.create(run, preset="")
        if stop_at:
            with monkeypatch.context() as patch:
                update = TrainingSession.update

                def stopping(training: TrainingSession) -> Update:
                    made = update(training)
                    if training.step == stop_at:
                        workspace.runs.ask(number, "stop")
                    return made

                patch.setattr(TrainingSession, "update", stopping)
                fit(workspace, number)
            assert workspace.runs.get(number).status == "stopped"
        fit(workspace, number)
        row = workspace.runs.get(number)
        assert row.status == "finished"
        said = (row.folder / "log.txt").read_text(encoding="utf-8")
        assert ("decoded again in every epoch, because that was chosen" in said) == (loading == "streamed")
        weights = sorted((row.folder / "checkpoints").iterdir())[-1].glob("*.safetensors")
        return b"".join(map(Path.read_bytes, weights)), workspace.results.series(number, "train/loss")[1].tolist()

    # In the middle of the second epoch.
    assert trained(way, stop_at=6) == trained("prepared")


def begun_at_once(data: config.Data, workspace: Path, loading: str) -> DataSplits:
    quiet = lambda share, note: None  # noqa: E731
    how: dict[str, Any] = {"image_size": SIZE, "workspace_folder": workspace, "progress": quiet}
    return load(data, loading=loading, prepared_first=10, **how)


@few_plain(1, "damaged", [True, False])
def test_many_pictures_give_the_same_batches_before_while_and_after_they_are_prepared(
    damaged: bool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.data.kept_listing.WORTH_KEEPING", 2)
    run = run_of(data := tars(root), workers=1)
    if damaged:
        tar = (root / "0.tar").read_bytes()
        (root / "0.tar").write_bytes(tar.replace(png(8)[:200], png(8)[:100] + bytes(100)))
    streamed = begun_at_once(data, tmp_path / "streamed", "streamed")
    assert streamed.train.images.listed
    assert streamed.report.problems == []
    assert len(list((tmp_path / "streamed" / "cache").glob("*/prepared.json"))) == len(["held-out ones"])
    plain = training_of(run, streamed)
    expected = losses(plain, 9)
    assert ["left out from now on" in news for news in plain.news()] == [True] * damaged
    plain.end()

    begun = training_of(run, begun_at_once(data, tmp_path, "auto"))
    first = losses(begun, 4)
    begun.keep_images()
    deadline = time.monotonic() + 60
    while not any("prepared now" in news for news in begun.news()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert first + losses(begun, 5) == expected
    begun.end()

    after = begun_at_once(data, tmp_path, "auto")
    assert after.train.fingerprint == streamed.train.fingerprint
    assert len(after.train.images.kept.pixels) == len(after.train) - damaged
    training = training_of(run, after)
    assert losses(training, 9) == expected
    assert len(training.first_batch()) >= 8 - damaged


def test_a_cache_that_is_made_beside_a_training_ends_with_it_and_is_continued(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "_CHUNK", 4)
    data, parts, decode = tars(root), [], prepared.decode_part
    begun = training_of(run_of(data, workers=1), begun_at_once(data, tmp_path, "auto"))

    def counted(part: prepared.Part, decoder: Any, ended: threading.Event) -> prepared.DonePart:
        parts.append(part.first)
        return decode(part, decoder, ended)

    def ending(part: prepared.Part, decoder: Any, ended: threading.Event) -> prepared.DonePart:
        if len(parts) == 2:
            begun.end()
        elif len(parts) > 2:
            assert ended.wait(60), "the others wait until the end is seen"
        return counted(part, decoder, ended)

    monkeypatch.setattr(prepared, "decode_part", ending)
    begun.keep_images()
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "keep images")
    thread.join(60)
    assert not thread.is_alive()
    before, parts[:] = set(parts), []
    monkeypatch.setattr(prepared, "decode_part", counted)
    after = begun_at_once(data, tmp_path, "prepared").train.images
    assert len(after.kept.pixels) == len(after)
    assert set(parts) < set(range(0, len(after), 4))
    assert before | set(parts) == set(range(0, len(after), 4))


def test_pictures_are_decoded_while_those_before_are_used(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.data.streamed_images._BATCH", 16)
    folder(root)
    (root / "20.png").write_bytes(png(20)[:90])
    paths = sorted(map(str, root.glob("*.png")))
    begun, read = [], StreamedImages.read
    monkeypatch.setattr(StreamedImages, "read", lambda images, rows: begun.append(len(rows)) or read(images, rows))
    expected, answers = read_pictures(paths, SIZE)
    seen = []
    for part, pixels, reasons, waited in pictures_ahead(paths, SIZE, None):
        assert len(begun) >= min(len(seen) + 1, 3)
        assert (pixels == expected[part]).all()
        assert reasons == [answer.reason for answer in answers[part]]
        assert waited >= 0
        seen.append(part)
    assert [(part.start, part.stop) for part in seen] == [(0, 16), (16, 32), (32, 40)]
    assert begun == [16, 16, 8]
    assert [part for part, *_ in pictures_ahead(paths[:5], SIZE, None)] == [slice(0, 5)]
    assert list(pictures_ahead([], SIZE, None)) == []
    assert begun == [16, 16, 8], "few pictures start no further helpers"


def test_a_share_holds_out_no_more_than_can_be_measured_often(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = dataclasses.replace(folder(root), heldout_share=0.5)
    every = read(data, tmp_path, "auto").heldout["heldout"]
    monkeypatch.setattr("trainer.data.splits.MOST_HELD_OUT", 5)
    few = read(data, tmp_path, "auto")
    assert len(few.heldout["heldout"]) == 5
    assert set(few.heldout["heldout"].paths) < set(every.paths)
    assert len(few.train) == COUNT - 5
    assert "50 % of the pictures, 5 at the most are held out" in few.report.split


def test_a_step_that_was_not_made_has_its_batch_again(root: Path, tmp_path: Path) -> None:
    images = read(folder(root), tmp_path, "streamed").train.images
    stream = BatchStream(images, lambda step: iter(list(batches(len(images), 4, 0, 0))[step:]), workers=1)
    rows, pixels = stream.batch(1)
    again, same = stream.batch(1)
    assert (rows == again).all()
    assert (pixels == same).all()
    assert (stream.batch(2)[1] == images[stream.batch(2)[0]]).all()
    stream.close()


def test_a_picture_that_breaks_while_it_is_trained_on_is_named_and_replaced(root: Path, tmp_path: Path) -> None:
    splits = read(folder(root), tmp_path, "streamed")
    pairs = splits.train
    order = list(batches(len(pairs), 8, 0, 0))
    victim, after = int(order[1][2]), int(order[1][2]) + 1
    Path(pairs.paths[victim]).write_bytes(b"no image")
    stream = BatchStream(pairs.images, lambda step: iter(order[step:]), workers=2)
    seen = [stream.batch(step) for step in range(len(order))]
    while after % len(pairs) in order[1]:
        after += 1
    expected = order[1].copy()
    expected[2] = after % len(pairs)
    assert (seen[1][0] == expected).all()
    assert len(stream.news) == 1
    assert stream.news[0].startswith(f"left out from now on: {pairs.paths[victim]}: The file is not")
    for rows, pixels in seen:
        assert (pixels == pairs.images[rows]).all()
    # Whoever begins in the middle sees the same.
    other = BatchStream(pairs.images, lambda step: iter(order[step:]), workers=1)
    assert (other.batch(1)[0] == expected).all()
    with pytest.raises(DataError, match="can no longer be read: The file is not"):
        pairs.images[victim]
    stream.close()
    other.close()


def test_a_drive_that_is_gone_ends_the_training_with_a_sentence(root: Path, tmp_path: Path) -> None:
    pairs = read(folder(root), tmp_path, "streamed").train
    root.rename(tmp_path / "unplugged")
    stream = BatchStream(pairs.images, lambda step: batches(len(pairs), 8, 0, 0), workers=1)
    with pytest.raises(DataError, match=r"8 of the 8 images of a batch can no longer be read; .*does not exist"):
        stream.batch(0)
    stream.close()


def test_a_helper_that_is_killed_is_replaced_and_no_batch_is_another(root: Path, tmp_path: Path) -> None:
    pairs = read(folder(root), tmp_path, "streamed").train
    order = list(batches(len(pairs), 1, 0, 0))
    stream = BatchStream(pairs.images, lambda step: iter(order[step:]), workers=1)
    before = set(psutil.Process().children(recursive=True))
    stream.batch(0)
    helpers = [one for one in set(psutil.Process().children(recursive=True)) - before if HELPER in one.cmdline()]
    assert len(helpers) == 1
    helpers[0].kill()
    for step in range(1, len(order)):
        rows, pixels = stream.batch(step)
        assert (rows == order[step]).all()
        assert (pixels == pairs.images[rows]).all()
    assert stream.news == []
    stream.close()


def test_that_nothing_can_be_decoded_ends_the_training_with_a_sentence(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = read(folder(root), tmp_path, "streamed").train
    stream = BatchStream(pairs.images, lambda step: batches(len(pairs), 8, 0, 0), workers=1)
    monkeypatch.setattr("trainer.images.decoder.safe_subprocess.start_helper", Mock(side_effect=OSError("no memory")))
    with pytest.raises(DataError, match="Pictures cannot be decoded: no memory"):
        stream.batch(0)
    stream.close()


def test_auto_streams_what_does_not_fit_and_says_so(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = folder(root)
    needed = len(read(data, tmp_path / "kept", "auto").train) * SIZE * SIZE * 3
    little = namedtuple("usage", "free")(SPARE + needed // 2)
    monkeypatch.setattr(prepared.shutil, "disk_usage", lambda folder: little)
    splits = read(data, tmp_path / "full", "auto")
    assert isinstance(splits.train.images, StreamedImages)
    assert "they would need 0 of the 64 MiB" in splits.train.images.why
    assert isinstance(splits.heldout["heldout"].images, np.memmap)
    # What is there already is used.
    assert isinstance(read(data, tmp_path / "kept", "auto").train.images, np.memmap)
    with pytest.raises(DataError, match='loading = "streamed"'):
        read(data, tmp_path / "full", "prepared")


def test_looking_at_all_images_goes_on_where_it_was_stopped(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = folder(root)
    monkeypatch.setattr(prepared, "_CHUNK", 5)

    def stop(share: float, note: str) -> None:
        if note.startswith("Scanning all images: 20 of"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(data, image_size=SIZE, workspace_folder=tmp_path, progress=stop, loading="streamed")
    parts: list[int] = []
    decode = prepared.decode_part
    monkeypatch.setattr(prepared, "decode_part", lambda part, *more: parts.append(part.first) or decode(part, *more))
    streamed = read(data, tmp_path, "streamed").train
    assert len(parts) <= (len(streamed) - 20) / 5 + 2  # held-out ones, too
    assert streamed.fingerprint == read(data, tmp_path / "other", "prepared").train.fingerprint


def test_equal_pictures_are_known_without_decoding_them_again(root: Path, tmp_path: Path) -> None:
    data = folder(root)
    for number in (3, 9, 20):
        (root / f"{number:02}.png").write_bytes(png(30))
    kept = read(data, tmp_path / "kept", "prepared").train
    streamed = read(data, tmp_path, "streamed").train
    assert len(streamed.images.digests) == len(streamed)
    sides = [matching_of(pairs, pixel_digests(pairs.images)) for pairs in (streamed, kept)]
    assert all((a == b).all() for a, b in zip(vars(sides[0].images).values(), vars(sides[1].images).values()))
    assert len(sides[0].images) < len(streamed)


def test_what_only_decoding_tells_is_recorded_once_a_run_has_prepared_its_pictures(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken pictures and held-out copies are counted as where everything is prepared before the first step."""
    monkeypatch.setattr("trainer.device.be_polite", lambda where: None)
    monkeypatch.setattr("trainer.training.session.FEW_PREPARED_FIRST", 10)
    monkeypatch.setattr("trainer.data.batch_stream.HEARTBEAT_S", 0)
    monkeypatch.setattr(prepared, "_CHUNK", 8)
    data = dataclasses.replace(folder(root), heldout_share=0.2)
    held = sorted(read(data, tmp_path / "look", "auto").heldout["heldout"].paths)
    train = sorted(set(map(str, root.glob("*.png"))) - set(held))
    Path(train[3]).write_bytes(b"no image")
    Path(train[5]).write_bytes(Path(held[0]).read_bytes())
    phases, told, report = [], threading.Event(), RunLog.progress
    decode, update = prepared.decode_part, TrainingSession.update

    def reported(log: RunLog, **now: Any) -> None:
        phases.append(now["phase"])
        if now["phase"] == "training · preparing images: 8 of 35":
            told.set()
        report(log, **now)

    def decoded(part: prepared.Part, *more: Any) -> prepared.DonePart:
        if part.first and "training" in phases:  # what is held out was prepared before
            assert told.wait(60)
        return decode(part, *more)

    def updated(training: TrainingSession) -> Update:
        making = [thread for thread in threading.enumerate() if thread.name == "keep images"]
        while making and making[0].is_alive() and not training.preparing:
            time.sleep(0.01)
        for thread in making if training.step == 6 else ():  # in the second epoch
            thread.join(60)
        return update(training)

    monkeypatch.setattr(RunLog, "progress", reported)
    monkeypatch.setattr(prepared, "decode_part", decoded)
    monkeypatch.setattr(TrainingSession, "update", updated)
    workspace, facts = Workspace(tmp_path / "workspace"), []
    base = run_of(data, workers=1, device="cpu")
    base = dataclasses.replace(base, watching=dataclasses.replace(base.watching, snapshots=2, evaluate_every=1000))
    for epochs, loading in ((3, "auto"), (1, "auto"), (1, "prepared")):
        run = dataclasses.replace(base, loading=loading, optimizer=dataclasses.replace(base.optimizer, epochs=epochs))
        number = workspace.runs.create(run, preset="")
        fit(workspace, number)
        facts.append(workspace.runs.get(number).facts)
    assert [(each["left_out"], each["heldout_copies"]) for each in facts] == [(1, {"heldout": 1})] * 3
    assert told.is_set()
    assert not phases[-1].startswith("training ·")
