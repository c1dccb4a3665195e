"""Shards of embeddings: the numbers, written once, continued, left out, opened as vectors."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.trainer.places.object_store import ObjectStore, environment_of
from tests.trainer.places.test_ssh import written
from trainer.__main__ import main
from trainer.analysis.distinct import matching, numbered
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.unit_rows import unit_rows
from trainer.evaluation import embed_set
from trainer.inference import shards
from trainer.inference.shards import WrittenShard
from trainer.places.embed_job import EmbedJob, bring, checkpoint_of
from trainer.places.storage import Storage
from trainer.store import Workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    server = ObjectStore()
    for name, value in environment_of(server.endpoint).items():
        monkeypatch.setenv(name, value)
    yield server
    server.end()


@pytest.fixture(scope="module")
def trained(trained_once) -> Path:
    """Return a workspace with one tiny run."""

    def make(folder: Path) -> None:
        workspace = str(folder / "workspace")
        assert main(["fit", "--config", str(written(folder, epochs=1)), "--workspace", workspace]) == 0

    return trained_once("embed-set", make).folder


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Return a folder of 23 captioned pictures, of which one cannot be read and one has the pixels of another."""
    folder, rng = tmp_path / "pictures", np.random.default_rng(0)
    folder.mkdir()
    for number in range(23):
        pixels = rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
        (folder / f"{number:02d}.txt").write_text(f"picture {number}")
    (folder / "09.png").write_bytes((folder / "08.png").read_bytes())
    content = (folder / "05.png").read_bytes()
    (folder / "05.png").write_bytes(content[:60])
    return folder


def embed(trained: Path, pictures: Path, out: Path, *more: str, status: int = 1) -> None:
    words = ["embed", "1", "--data", str(pictures), "--out", str(out), "--shard-rows", "8", "--json"]
    assert main([*words, *more, "--workspace", str(trained)]) == status


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but what differs between a first and a later call."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != "embeddings.json"}


def test_shards_hold_what_embed_gives_one_by_one(trained, pictures, tmp_path, capsys):
    embed(trained, pictures, tmp_path / "out")
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["n"], told["shards"], told["left_out"], told["dataset"]) == (22, 3, 1, "pictures")
    assert list(told["unreadable"]) == ["05.png"]
    sides = {}
    for side in ("img", "text"):
        parts = [np.load(tmp_path / "out" / f"{side}_emb" / f"{side}_emb_{n:05d}.npy") for n in range(3)]
        assert [len(part) for part in parts] == [7, 8, 7]
        sides[side] = np.concatenate(parts)
    items = [pq.read_table(tmp_path / "out" / "metadata" / f"metadata_{n:05d}.parquet") for n in range(3)]
    paths = [name for part in items for name in part["path"].to_pylist()]
    captions = [words for part in items for words in part["caption"].to_pylist()]
    pixels = [digest for part in items for digest in part["pixels"].to_pylist()]
    assert paths == [f"{n:02d}.png" for n in range(23) if n != 5]
    assert captions == [f"picture {n}" for n in range(23) if n != 5]
    assert len(set(pixels)) == 21
    assert pixels[paths.index("08.png")] == pixels[paths.index("09.png")]
    for what, given, side in (
        ("--images", [str(pictures / one) for one in paths], "img"),
        ("--texts", captions, "text"),
    ):
        words = ["embed", "1", what, *given, "--out", str(tmp_path / side), "--workspace", str(trained)]
        assert main(words) == 0
        np.testing.assert_allclose(sides[side], np.load(tmp_path / side / "embeddings.npy"), atol=1e-6)


def test_a_cut_command_continues_and_makes_the_same_files(trained, pictures, tmp_path, capsys, monkeypatch):
    embed(trained, pictures, tmp_path / "whole")
    made: list[int] = []
    write = shards.write_shard

    def cut_off(model, shard, folder, digest):
        if len(made) == 1:
            raise KeyboardInterrupt
        made.append(shard.number)
        return write(model, shard, folder, digest)

    with monkeypatch.context() as patch:
        patch.setattr("trainer.evaluation.embed_set.write_shard", cut_off)
        embed(trained, pictures, tmp_path / "out", status=130)
    # As a power cut leaves it: a file of the second shard without the manifest, and a draft.
    (tmp_path / "out" / "img_emb" / "img_emb_00001.npy").write_bytes(b"half")
    (tmp_path / "out" / "img_emb" / ".tmp-1-abcd-img_emb_00002.npy").write_bytes(b"half")
    capsys.readouterr()
    embed(trained, pictures, tmp_path / "out")
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["kept"] == 1
    (tmp_path / "out" / "img_emb" / ".tmp-1-abcd-img_emb_00002.npy").unlink()
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_what_has_changed_is_made_again_and_the_rest_is_kept(trained, pictures, tmp_path, capsys):
    out = tmp_path / "out"
    embed(trained, pictures, out)
    before = files_of(out)
    flipped = bytearray((out / "text_emb" / "text_emb_00000.npy").read_bytes())
    flipped[-1] ^= 1
    (out / "text_emb" / "text_emb_00000.npy").write_bytes(bytes(flipped))
    capsys.readouterr()
    embed(trained, pictures, out)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["kept"] == 2
    assert files_of(out) == before
    (pictures / "20.txt").write_text("another caption")
    embed(trained, pictures, out)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["kept"] == 2
    changed = {name for name, content in files_of(out).items() if content != before[name]}
    assert changed == {"text_emb/text_emb_00002.npy", "metadata/metadata_00002.parquet", "shards/00002.json"}
    # Pairs that are gone leave no shard behind.
    for number in range(16, 23):
        (pictures / f"{number:02d}.png").unlink()
    embed(trained, pictures, out)
    assert sorted(path.name for path in (out / "img_emb").iterdir()) == ["img_emb_00000.npy", "img_emb_00001.npy"]


def test_other_embeddings_and_other_files_are_not_overwritten(trained, pictures, tmp_path, capsys):
    embed(trained, pictures, tmp_path / "out")
    words = ["embed", "1", "--data", str(pictures), "--out", str(tmp_path / "out"), "--workspace", str(trained)]
    assert main([*words, "--shard-rows", "9"]) == 2
    assert "Choose another folder" in capsys.readouterr().err
    words[words.index(str(tmp_path / "out"))] = str(pictures)
    assert main(words) == 2
    assert "is not empty" in capsys.readouterr().err
    words[words.index("--out") + 1] = str(tmp_path / "new")
    assert main([*words, "--split", "test"]) == 2
    assert "has no split test" in capsys.readouterr().err


def test_shards_in_an_object_store_are_those_of_a_disk(trained, pictures, tmp_path, monkeypatch, object_store):
    """As the workers of Ray write them; Ray itself is tried by tests/trainer/places/test_ray.py."""
    embed(trained, pictures, tmp_path / "disk")
    workspace = Workspace(trained)
    row = workspace.runs.get(1)
    step, digest = checkpoint_of(workspace, row, None)
    storage = Storage("s3://bucket/job")
    for file in (row.folder / "config.toml", *(row.folder / "checkpoints" / f"step_{step:06d}").iterdir()):
        storage.send(file, f"model/{file.relative_to(row.folder).as_posix()}")
    job = EmbedJob(model=digest, step=step, name="far", data=str(pictures), rows=8)
    storage.write("job.json", job.to_json().encode())

    def by_one_worker(storage, job, shards, workers):
        actor = embed_set.ShardActor(storage.address, job.to_json())
        for shard in shards:
            (text,) = actor({"shard": [shard.to_json()]})["written"]
            yield WrittenShard(**json.loads(text))

    monkeypatch.setattr(embed_set, "_over_ray", by_one_worker)
    kept = []
    for _ in range(2):
        told = embed_set.run_job(storage.address, tmp_path / "there", lambda *_: None, embed_set.Workers(count=1))
        kept.append(told["kept"])
        bring(storage.inside("out"), tmp_path / "brought", lambda *_: None)
        assert files_of(tmp_path / "brought") == {
            name: content for name, content in files_of(tmp_path / "disk").items() if name != "job.json"
        }
        object_store.objects["bucket/job/out/img_emb/img_emb_00001.npy"] += b"flipped"
    assert kept == [0, 2]
    workspace.close()


def test_they_open_as_vectors(trained, pictures, tmp_path, capsys):
    embed(trained, pictures, tmp_path / "out")
    capsys.readouterr()
    there = str(tmp_path / "other")
    words = ["open", "vectors", "--image", str(tmp_path / "out"), "--pictures", str(pictures), "--name", "mine"]
    assert main([*words, "--workspace", there]) == 0
    workspace = Workspace(Path(there))
    (snapshot,) = workspace.results.snapshots(1)
    assert snapshot.n == 22
    workspace.close()


def test_of_its_own_data_a_run_marks_what_it_has_held_out(trained, pictures, tmp_path):
    """As `evaluate` does: a row that the run has held out is not marked as one to train on."""
    from dataclasses import replace

    from trainer import config
    from trainer.data.dataset_index import listing
    from trainer.data.splits import parts_of
    from trainer.inference.open_model import open_run

    workspace, data = Workspace(trained), config.Folder(path=str(pictures), heldout_share=0.3)
    run = replace(workspace.runs.config_of(1), data=data)
    step, digest = checkpoint_of(workspace, workspace.runs.get(1), None)
    parts = parts_of(data, listing(data, tmp_path, lambda *_: None))
    expected = {source.relative: split for split, sources in parts.items() for source in sources}
    del expected["05.png"]
    for split in (None, "heldout"):
        job = EmbedJob(model=digest, step=step, name="own", data=str(pictures), split=split, rows=8)
        out = tmp_path / f"{split}"
        embed_set.embed_set(
            job, out, model=open_run(workspace, 1, step), run=run, workspace=tmp_path, progress=lambda *_: None
        )
        rows = [row for file in (out / "metadata").iterdir() for row in pq.read_table(file).to_pylist()]
        marked = {row["path"]: row["split"] for row in rows}
        assert marked == {path: part for path, part in expected.items() if split in (None, part)}
    workspace.close()


def test_opened_as_vectors_pictures_with_several_captions_have_the_recall_of_the_evaluation(
    trained, pictures, tmp_path, capsys
):
    """A table of two captions a picture, embedded and opened: pixels tell the pictures, with or without their files."""
    lines = ["file,caption"]
    for number in range(23):
        if number != 5:
            lines += [f"{number:02d}.png,picture {number}", f"{number:02d}.png,another word on {number}"]
    (pictures / "captions.csv").write_text("\n".join(lines) + "\n")
    data = pictures / "captions.csv"
    embed(trained, data, tmp_path / "out", status=0)
    capsys.readouterr()
    workspace, sides = Workspace(trained), {}
    for side, folder in (("image", "img_emb"), ("text", "text_emb")):
        parts = sorted((tmp_path / "out" / folder).glob("*.npy"))
        sides[side] = np.concatenate([np.load(part) for part in parts]).astype(np.float32)
    tables = [pq.read_table(part).to_pydict() for part in sorted((tmp_path / "out" / "metadata").glob("*.parquet"))]
    columns = {name: [value for table in tables for value in table[name]] for name in ("pixels", "caption")}
    expected = matching(numbered(columns["caption"]), numbered(columns["pixels"]))
    unit = {side: unit_rows(rows) for side, rows in sides.items()}
    ways = (("image_to_text", "image", "text", expected.texts), ("text_to_image", "text", "image", expected.images))
    for more in ([], ["--pictures", str(pictures)]):
        words = ["open", "vectors", "--image", str(tmp_path / "out"), *more, "--json", "--workspace", str(trained)]
        assert main(words) == 0
        answer = json.loads(capsys.readouterr().out)
        assert "44 pairs: 21 pictures (equal pixels), 44 captions" in answer["note"]
        stored = workspace.results.last_values(answer["id"])
        for name, asks, answers, right in ways:
            assert stored[f"val/{name}_R@1"] == recall_at(question_ranks(unit[asks], unit[answers], right), 1)
