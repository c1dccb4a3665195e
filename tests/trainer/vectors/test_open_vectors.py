"""Vectors of other programs: written by the real libraries, opened by the command, compared with float64 loops."""

import contextlib
import errno
import hashlib
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.analysis import tiled_ranks
from trainer.analysis.camera_3d import components
from trainer.analysis.projection import pca, principal_axes
from trainer.analysis.unit_rows import is_vector, unit_rows
from trainer.charts.matching import matching_of, units_of
from trainer.charts.snapshots import choose_snapshot
from trainer.cli.open import common_name
from trainer.evaluation.tasks import clip_benchmark_recalls
from trainer.scheduling import launch
from trainer.store import RunLog, Snapshot, Workspace, component_files, manifests, read_snapshot, snapshot_name
from trainer.vectors import kept_counts, open_run, recall
from trainer.vectors.matrices import VectorError, find
from trainer.vectors.open_run import sample
from trainer.vectors.unit_copy import copy_unit_rows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

N, D = 40, 6
RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(N, D)).astype(np.float32)
TEXT = (IMAGE + RNG.normal(size=(N, D))).astype(np.float32)


def unit(rows: np.ndarray) -> np.ndarray:
    """Return unit rows, one after the other in float64."""
    return np.array([row.astype(np.float64) / np.sqrt((row.astype(np.float64) ** 2).sum()) for row in rows])


@pytest.fixture
def opened(tmp_path: Path, capsys: Any) -> Callable[..., tuple[dict[str, Any], Snapshot]]:
    """Return a function that opens vectors by the command and returns its answer and the snapshot."""

    def call(*words: str) -> tuple[dict[str, Any], Snapshot]:
        code = main(["open", "vectors", *words, "--json", "--workspace", str(tmp_path / "ws")])
        said = capsys.readouterr()
        assert code == 0, said.err
        answer = json.loads(said.out)
        workspace = Workspace(tmp_path / "ws")
        return answer, read_snapshot(choose_snapshot(workspace, workspace.runs.get(answer["id"])).folder)

    return call


def npy(folder: Path) -> list[str]:
    np.save(folder / "a.npy", IMAGE)
    np.save(folder / "b.npy", TEXT)
    return ["--image", f"{folder / 'a.npy'}", "--text", f"{folder / 'b.npy'}"]


def npz(folder: Path) -> list[str]:
    np.savez(folder / "both.npz", image_features=IMAGE, text_features=TEXT, labels=np.arange(N))
    return ["--image", str(folder / "both.npz")]


def compressed_npz(folder: Path) -> list[str]:
    np.savez_compressed(folder / "both.npz", img=IMAGE.astype(np.float64), txt=TEXT.astype(np.float64))
    return ["--image", str(folder / "both.npz")]


def safetensors(folder: Path) -> list[str]:
    save_file({"image_embeds": IMAGE, "text_embeds": TEXT}, folder / "both.safetensors")
    return ["--image", str(folder / "both.safetensors")]


def parquet(folder: Path) -> list[str]:
    table = pa.table({"img": list(IMAGE), "txt": list(TEXT), "caption": [f"caption {i}" for i in range(N)]})
    pq.write_table(table, folder / "t.parquet", row_group_size=7)
    return ["--image", str(folder / "t.parquet")]


def feather(folder: Path) -> list[str]:
    fixed = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), D)
        for name, rows in {"image": IMAGE, "text": TEXT}.items()
    }
    pyarrow.feather.write_feather(pa.table(fixed), folder / "t.feather", chunksize=9)
    return ["--image", str(folder / "t.feather")]


def clip_retrieval(folder: Path) -> list[str]:
    """As `clip-retrieval inference` writes it: twelve parts, whose names sort otherwise than their numbers."""
    place = folder / "embeddings"
    for name in ("img_emb", "text_emb", "metadata"):
        (place / name).mkdir(parents=True)
    for part, rows in enumerate(np.array_split(np.arange(N), 12)):
        np.save(place / "img_emb" / f"img_emb_{part}.npy", IMAGE[rows])
        np.save(place / "text_emb" / f"text_emb_{part}.npy", TEXT[rows])
        told = {"image_path": [f"{i}.jpg" for i in rows], "caption": [f"caption {i}" for i in rows]}
        pq.write_table(pa.table(told), place / "metadata" / f"metadata_{part}.parquet")
    return ["--image", str(place)]


@few_plain(
    1,
    "write",
    nightly_except(
        [npy, npz, compressed_npz, safetensors, parquet, feather, clip_retrieval], npy, safetensors, parquet
    ),
)
def test_both_sides_arrive_row_by_row(tmp_path: Path, opened, write: Callable[[Path], list[str]]):
    answer, found = opened(*write(tmp_path))
    assert (answer["rows"], answer["kept"], answer["left_out"], answer["width"]) == (N, N, 0, D)
    np.testing.assert_allclose(found.image, unit(IMAGE), atol=1e-6)
    np.testing.assert_allclose(found.text, unit(TEXT), atol=1e-6)
    if write in (parquet, clip_retrieval):
        assert list(found.items.caption) == [f"caption {i}" for i in range(N)]


def test_a_run_of_two_files_has_the_common_part_of_their_names():
    stems = (["my_images", "my_texts"], ["images", "texts"], ["x_y", "x_y"])
    assert [*map(common_name, stems)] == ["my", "images", "x_y"]


def test_the_recall_is_that_of_a_loop_over_pairs(tmp_path: Path, opened):
    answer, _ = opened(*npy(tmp_path))
    results = Workspace(tmp_path / "ws").results.answers(answer["id"])
    cosines = unit(IMAGE) @ unit(TEXT).T
    first = sum(all(cosines[i, i] > cosines[i, j] for j in range(N) if j != i) for i in range(N)) / N
    assert 0.2 < first < 1
    (retrieval,) = [one for one in results if one.question is not None and one.question.task == "retrieval"]
    assert retrieval.metrics["image_to_text_R@1"] == pytest.approx(first)
    assert retrieval.question.words() == "n = 40, among 40 texts, 40 distinct pictures"


def test_ranking_says_how_far_it_is(tmp_path: Path, opened, monkeypatch: pytest.MonkeyPatch):
    phases: list[str] = []
    monkeypatch.setattr(recall, "EVERY_S", 0.0)
    monkeypatch.setattr(RunLog, "report", lambda _log, phase: phases.append(phase))
    opened(*npy(tmp_path))
    assert phases == ["reading vectors: 0 %", "ranking: 0 %"]
    phases.clear()
    monkeypatch.setattr("trainer.analysis.tiled_ranks.EDGE", 10)
    opened(*npy(tmp_path))
    assert phases[2].startswith("ranking")
    assert ": 25 %, " in phases[2]
    assert phases[2].endswith("less than 1 min left")


def test_an_interrupted_ranking_shows_its_sample_and_goes_on_where_it_was(tmp_path: Path, opened, monkeypatch):
    _, snapshot = opened(*npy(tmp_path))
    right = (unit(IMAGE) @ unit(TEXT).T).argmax(axis=1) == np.arange(N)
    monkeypatch.setattr("trainer.analysis.tiled_ranks.EDGE", 10)
    monkeypatch.setattr(kept_counts, "EVERY_S", 0.0)
    products: list[int] = []
    multiplied = tiled_ranks.multiplied
    monkeypatch.setattr(tiled_ranks, "multiplied", lambda *a: [products.append(1), multiplied(*a)][1])

    def measure(progress: Any) -> recall.MeasuredRecall:
        return recall.measured_recall(snapshot, units_of(snapshot), progress, np.inf, tmp_path / "ws")

    notes: list[str] = []

    def stop_late(share: float, note: str) -> None:
        notes.append(note)
        if share > 0.6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(stop_late)
    asked = np.random.default_rng(0).permutation(N)[:20]
    assert f", R@1 of images so far {right[asked].mean():.3f} (95 %: " in notes[-1]
    assert notes[-1].endswith("20 of 40 questions)")
    (file,) = (tmp_path / "ws" / "layouts").glob("*.ranks.npy")
    before = len(products)
    shares: list[float] = []
    assert measure(lambda share, _note: shares.append(share)).main == pytest.approx(right.mean())
    assert shares[0] == pytest.approx(0.5)
    assert len(products) - before == before - 4  # three blocks were done, two of them kept
    assert not file.exists()


def test_of_many_pairs_questions_are_drawn_and_all_are_asked_later(tmp_path: Path, opened, capsys, monkeypatch):
    monkeypatch.setattr(open_run, "MOST_COSINES", 0)
    monkeypatch.setattr(recall, "FEWEST", 10)
    answer, snapshot = opened(*npy(tmp_path))
    cosines = unit(IMAGE) @ unit(TEXT).T
    right = cosines.argmax(axis=1) == np.arange(N)
    drawn = recall.drawn_questions(matching_of(snapshot).texts, 0)
    assert len(drawn) == 10
    share = right[drawn].mean()
    assert f"R@1 of images is {share:.3f} (95 %: " in answer["note"]
    assert (
        "from 10 questions drawn at random, each among all 40 texts. `trainer evaluate 1` asks all." in answer["note"]
    )
    store = Workspace(tmp_path / "ws")
    (sampled,) = [one for one in store.results.answers(1) if one.question and one.question.task == "retrieval"]
    assert sampled.question.words() == "n = 10, among 40 texts, 40 distinct pictures, questions drawn at random"
    assert sampled.question.noted_counts == {"image_to_text": 10, "text_to_image": 10}
    assert store.runs.get(1).last == pytest.approx(share)
    assert main(["evaluate", "1", "--json", "--workspace", str(tmp_path / "ws")]) == 0
    (whole,) = json.loads(capsys.readouterr().out)
    assert (whole["n"], whole["pictures"], whole["texts"]) == (N, N, N)
    assert whole["metrics"]["image_to_text_R@1"] == pytest.approx(right.mean())
    row = Workspace(tmp_path / "ws").runs.get(1)
    assert (row.status, row.last, row.best) == ("finished", pytest.approx(right.mean()), pytest.approx(right.mean()))
    assert row.facts["heldout_questions"] == {"vectors": {"image_to_text": N, "text_to_image": N}}


def test_the_map_is_ready_before_questions_are_asked(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(open_run, "WORTH_KEEPING", 0)
    monkeypatch.setattr(component_files, "WORTH_KEEPING", 0)

    def interrupted(*_: Any, **__: Any) -> None:
        assert "Run 1 (a): 40 of 40 vectors of 6 numbers." in capsys.readouterr().out
        raise KeyboardInterrupt

    monkeypatch.setattr(open_run, "measure_step", interrupted)
    register, layouts = RunLog.snapshot, list[Path]()

    def registered(*arguments: Any) -> None:
        layouts.extend((tmp_path / "ws" / "layouts").iterdir())
        register(*arguments)

    monkeypatch.setattr(RunLog, "snapshot", registered)
    with contextlib.suppress(KeyboardInterrupt):
        main(["open", "vectors", *npy(tmp_path), "--workspace", str(tmp_path / "ws")])
    row = Workspace(tmp_path / "ws").runs.get(1)
    assert (row.status, row.last) == ("finished", None)
    assert len(layouts) == 1, "the window would compute the map again"
    snapshot = read_snapshot(choose_snapshot(Workspace(tmp_path / "ws"), row).folder)
    assert manifests.verified(snapshot.folder)["files"].keys() >= {"image.npy", "text.npy"}
    kept = component_files.kept_components(tmp_path / "ws", snapshot)
    assert kept == pytest.approx(components((snapshot.image, snapshot.text)), abs=1e-5)


def test_vectors_are_opened_by_another_process_without_torch(tmp_path: Path, capsys):
    assert main(["open", "vectors", *npy(tmp_path), "--detach", "--json", "--workspace", str(tmp_path / "ws")]) == 0
    answer, workspace = json.loads(capsys.readouterr().out), Workspace(tmp_path / "ws")
    assert launch.wait_until_ended(workspace, answer["id"], timeout_s=60)
    row = workspace.runs.get(answer["id"])
    assert (row.name, row.status, row.pid) == ("a", "finished", None)
    assert "40 of 40 vectors of 6 numbers" in Path(answer["log"]).read_text()


def test_a_run_that_is_stopped_while_it_is_opened_keeps_nothing_and_can_be_opened_again(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(recall, "EVERY_S", 0)
    npy(tmp_path)
    workspace = Workspace(tmp_path / "ws")
    data = config.Vectors(image_vectors=str(tmp_path / "a.npy"), called="a")
    run = workspace.runs.create(open_run.run_of(data))
    workspace.runs.change(run, status="starting", asked="stop")
    with pytest.raises(KeyboardInterrupt):
        open_run.open_here(workspace, run, keep=True)
    row = workspace.runs.get(run)
    assert (row.status, row.reason) == ("stopped", "Stopped before its vectors were copied.")
    assert not [*row.folder.glob(".tmp-unit-*"), *(row.folder / "snapshots").glob("*")]
    draft = row.folder / ".tmp-unit-of-a-killed-process"
    draft.mkdir()
    assert open_run.open_here(workspace, run, keep=True).kept == N
    assert workspace.runs.get(run).status == "finished"
    assert not draft.exists()


def test_a_run_of_its_own_process_says_why_it_could_not_be_opened(tmp_path: Path):
    np.save(tmp_path / "zeros.npy", np.zeros((4, 6), np.float32))
    workspace = Workspace(tmp_path / "ws")
    run = workspace.runs.create(open_run.run_of(config.Vectors(image_vectors=str(tmp_path / "zeros.npy"), called="a")))
    with pytest.raises(VectorError):
        open_run.open_here(workspace, run, keep=True)
    row = workspace.runs.get(run)
    assert row.status == "failed"
    assert "Fewer than two rows are vectors" in row.reason


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_blocks_of_two_threads_arrive_in_order_and_are_summed_alike(tmp_path: Path, monkeypatch, dtype: type):
    monkeypatch.setattr("trainer.vectors.unit_copy.AT_ONCE", 7)
    monkeypatch.setattr("trainer.vectors.unit_copy.HALF_FROM", 0)
    image = IMAGE.astype(dtype)
    image[9], image[20:28] = 0, np.nan
    np.save(tmp_path / "a.npy", image)
    matrix = find(tmp_path / "a.npy").image
    assert matrix is not None
    made = []

    class SlowDigest:
        def __init__(self, header: bytes) -> None:
            self.hexdigest = hashlib.sha256(header).hexdigest

        def update(self, _rows: memoryview) -> None:
            time.sleep(0.01)  # The threads are ahead: what waits is not overwritten.

    monkeypatch.setattr("trainer.vectors.unit_copy.hashlib", SimpleNamespace(sha256=SlowDigest))
    for number in range(2):
        (tmp_path / str(number)).mkdir(mode=0o700)
        made.append(copy_unit_rows({"image": matrix}, np.arange(N), tmp_path / str(number)))
    kept = np.delete(image.astype(np.float32), [9, *range(20, 28)], 0)
    np.testing.assert_allclose(
        np.load(made[0].sides["image"].path), unit(kept), atol=1e-3 if dtype == np.float16 else 1e-7
    )
    for one, other, expected in zip(made[0].scatter.axes(3), made[1].scatter.axes(3), principal_axes(unit(kept), 3)):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, atol=1e-4)


def test_a_disk_that_fails_while_blocks_are_stored_ends_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr("trainer.vectors.unit_copy.SYNCED_AFTER", 1)
    monkeypatch.setattr("trainer.vectors.unit_copy.os", SimpleNamespace(fsync=full))
    np.save(tmp_path / "a.npy", IMAGE)
    (tmp_path / "copy").mkdir(mode=0o700)
    with pytest.raises(OSError, match="no room"):
        copy_unit_rows({"image": find(tmp_path / "a.npy").first}, np.arange(N), tmp_path / "copy")


@pytest.mark.parametrize("dtypes", [(np.float16, np.float16), (np.float16, np.float32)])
def test_two_large_sides_are_stored_and_summed_alike(tmp_path: Path, opened, monkeypatch, dtypes):
    monkeypatch.setattr("trainer.vectors.unit_copy.HALF_FROM", 0)
    monkeypatch.setattr("trainer.vectors.unit_copy.AT_ONCE", 7)
    monkeypatch.setattr(component_files, "WORTH_KEEPING", 1)
    monkeypatch.setattr(open_run, "WORTH_KEEPING", 1)
    sides = [IMAGE.astype(dtypes[0]), TEXT.astype(dtypes[1])]
    sides[0][9], sides[1][20:28] = 0, np.nan
    for name, side in zip("ab", sides, strict=True):
        np.save(tmp_path / f"{name}.npy", side)
    _, snapshot = opened("--image", str(tmp_path / "a.npy"), "--text", str(tmp_path / "b.npy"))
    kept = [unit(np.delete(side.astype(np.float64), [9, *range(20, 28)], 0)) for side in sides]
    assert {snapshot.image.dtype, snapshot.text.dtype} == {np.result_type(*dtypes)}
    for side, expected in zip((snapshot.image, snapshot.text), kept, strict=True):
        np.testing.assert_allclose(side, expected, atol=1e-3)
    points = component_files.kept_components(tmp_path / "ws", snapshot)
    np.testing.assert_allclose(points, pca(np.concatenate(kept), 3), atol=1e-3)


def test_a_large_side_in_half_precision_stays_so(tmp_path: Path, opened, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainer.vectors.unit_copy.HALF_FROM", 0)
    np.save(tmp_path / "a.npy", IMAGE.astype(np.float16))
    _, snapshot = opened("--image", str(tmp_path / "a.npy"))
    assert snapshot.image.dtype == np.float16
    np.testing.assert_allclose(snapshot.image, unit(IMAGE.astype(np.float16)), atol=1e-3)


def test_a_report_of_many_pairs_leaves_umap_out_and_says_so(tmp_path: Path, opened, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainer.cli.report.MOST_UMAP", N - 1)
    answer, _ = opened(*npy(tmp_path))
    page = tmp_path / "report.html"
    assert main(["report", "--runs", str(answer["id"]), "--out", str(page), "--workspace", str(tmp_path / "ws")]) == 0
    text = page.read_text(encoding="utf-8")
    assert f"{N} pairs take many minutes. trainer export map --method umap draws it." in text
    assert "Map, principal components" in text
    assert "Map, UMAP, colored" not in text


def test_one_side_is_enough_and_says_which(tmp_path: Path, opened):
    np.save(tmp_path / "t.npy", TEXT)
    answer, found = opened("--text", str(tmp_path / "t.npy"))
    assert found.image is None
    np.testing.assert_allclose(found.text, unit(TEXT), atol=1e-6)
    run = Workspace(tmp_path / "ws").runs.config_of(answer["id"])
    assert run.objective == config.TextsElsewhere()


def test_a_file_of_torch_as_clip_benchmark_keeps_its_features(tmp_path: Path, opened):
    torch.save(torch.from_numpy(IMAGE), tmp_path / "features_train.pt")
    _, found = opened("--image", str(tmp_path / "features_train.pt"))
    np.testing.assert_allclose(found.image, unit(IMAGE), atol=1e-6)


def test_a_folder_of_clip_benchmark_has_splits_and_classes(tmp_path: Path, opened, capsys):
    folder = tmp_path / "CIFAR10-ViT-B-32-laion"
    folder.mkdir()
    for split, rows in (("train", IMAGE), ("val", TEXT[:-3])):
        torch.save(torch.from_numpy(rows).half(), folder / f"features_{split}.pt")
        torch.save(torch.arange(len(rows)) % 10, folder / f"targets_{split}.pt")
    assert main(["open", "vectors", "--image", str(folder), "--workspace", str(tmp_path / "ws")]) == 2
    assert "features_train (40 x 6), features_val (37 x 6). Name one of them" in capsys.readouterr().err
    _, found = opened("--image", str(folder), "--image-column", "features_val")
    np.testing.assert_allclose(found.image, unit(TEXT[:-3]), atol=1e-3)
    assert list(found.items.label) == [str(i % 10) for i in range(N - 3)]
    _, alone = opened("--image", str(folder / "features_train.pt"))
    assert list(alone.items.label) == [str(i % 10) for i in range(N)]


def test_a_data_set_of_lance(tmp_path: Path, opened):
    lance = pytest.importorskip("lance", reason="the extra [lance] is not installed")
    table = pa.table({"image": list(IMAGE), "text": list(TEXT), "caption": [f"caption {i}" for i in range(N)]})
    lance.write_dataset(table, str(tmp_path / "x.lance"), max_rows_per_file=15)
    _, found = opened("--image", str(tmp_path / "x.lance"))
    np.testing.assert_allclose(found.image, unit(IMAGE), atol=1e-6)
    np.testing.assert_allclose(found.text, unit(TEXT), atol=1e-6)
    assert list(found.items.caption) == [f"caption {i}" for i in range(N)]


@pytest.mark.skipif(find_spec("lance") is not None, reason="Lance is installed")
def test_a_data_set_of_lance_names_the_extra_that_reads_it(tmp_path: Path, capsys):
    (tmp_path / "x.lance" / "_versions").mkdir(parents=True)
    words = ["open", "vectors", "--image", str(tmp_path / "x.lance"), "--workspace", str(tmp_path / "ws")]
    assert main(words) == 2
    assert "pip install 'contrastive-explorer[lance]'" in capsys.readouterr().err


def test_bfloat16_of_safetensors(tmp_path: Path, opened):
    rounded = torch.from_numpy(IMAGE).to(torch.bfloat16)
    save_torch({"features": rounded}, tmp_path / "f.safetensors")
    _, found = opened("--image", str(tmp_path / "f.safetensors"))
    np.testing.assert_allclose(found.image, unit(rounded.float().numpy()), atol=1e-6)


def test_a_data_set_of_hugging_face_with_columns_of_embeddings(tmp_path: Path, opened):
    datasets = pytest.importorskip("datasets", reason="the extra [huggingface] is not installed")
    told = {"image_emb": IMAGE.tolist(), "text_emb": TEXT.tolist(), "caption": [f"caption {i}" for i in range(N)]}
    datasets.Dataset.from_dict(told).save_to_disk(str(tmp_path / "saved"), num_shards=3)
    _, found = opened("--image", str(tmp_path / "saved"))
    np.testing.assert_allclose(found.image, unit(IMAGE), atol=1e-6)
    np.testing.assert_allclose(found.text, unit(TEXT), atol=1e-6)
    assert list(found.items.caption) == told["caption"]


def test_a_data_set_of_several_splits_names_them(tmp_path: Path, capsys):
    for split in ("train", "test"):
        (tmp_path / "saved" / split).mkdir(parents=True)
        pq.write_table(pa.table({"emb": list(IMAGE)}), tmp_path / "saved" / split / "0.parquet")
    words = ["open", "vectors", "--image", str(tmp_path / "saved"), "--workspace", str(tmp_path / "ws")]
    assert main(words) == 2
    assert f"holds tables in test, train. Name one of these: {tmp_path / 'saved' / 'test'}." in capsys.readouterr().err


def hub_snapshot(folder: Path, *splits: str) -> Path:
    """Write a data set as its snapshot of the hub has it, and return where: two tables of each split in `data`."""
    features = {"label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}}
    about = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    for split in splits:
        for part, rows in enumerate((slice(0, 15), slice(15, N))):
            labels = pa.array([*[i % 3 for i in range(N)][rows][:-1], None])
            pictures = [{"bytes": b"", "path": None} for _ in IMAGE[rows]]
            table = pa.table({"image": pictures, "image_emb": list(IMAGE[rows]), "label": labels})
            file = folder / "data" / f"{split}-{part:05d}-of-00002.parquet"
            pq.write_table(table.replace_schema_metadata(about), file)
    return folder


def test_a_snapshot_of_the_hub_has_its_rows_in_order_and_classes_by_name(tmp_path: Path, opened):
    answer, found = opened("--image", str(hub_snapshot(tmp_path / "abc", "train")))
    np.testing.assert_allclose(found.image, unit(IMAGE), atol=1e-6)
    names = [("cat", "dog", "owl")[row % 3] for row in range(N)]
    assert list(found.items.label) == ["" if row in (14, N - 1) else name for row, name in enumerate(names)]
    assert answer["rows"] == N


@pytest.mark.nightly
def test_a_snapshot_of_the_hub_with_several_splits_asks_for_one(tmp_path: Path, opened, capsys):
    folder = hub_snapshot(tmp_path / "abc", "train", "test")
    words = ["open", "vectors", "--image", str(folder), "--workspace", str(tmp_path / "ws")]
    assert main(words) == 2
    pattern = str(folder / "data" / "train-*.parquet")
    assert f"holds the splits test, train. Name one of them: {pattern}" in capsys.readouterr().err
    _, found = opened("--image", pattern)
    np.testing.assert_allclose(found.image, unit(IMAGE), atol=1e-6)
    with pytest.raises(VectorError, match="holds no vectors"):
        find(folder / "data" / "none-*.parquet")


def test_items_give_ids_paths_captions_classes_and_columns(tmp_path: Path, opened):
    lines = ["key,file_name,title,class,score"]
    lines += [f'k{i},{"../" if i == 3 else ""}p{i}.jpg,"a, {i}",{"xy"[i % 2]},{i / 2}' for i in range(N)]
    (tmp_path / "items.csv").write_text("\n".join(lines) + "\n")
    words = [*npy(tmp_path), "--items", str(tmp_path / "items.csv"), "--pictures", str(tmp_path / "pics")]
    _, found = opened(*words, "--name", "Mine", "--called", "Faces")
    items = found.items
    assert (found.model, found.dataset) == ("Mine", "Faces")
    assert (items.id[5], items.caption[5], items.label[5]) == ("k5", "a, 5", "y")
    assert items.path[5] == str(tmp_path / "pics" / "p5.jpg")
    assert items.path[3] == "", "a path out of the folder of pictures is nobody's picture"
    assert list(items.metadata["score"]) == [i / 2 for i in range(N)]


@pytest.mark.parametrize(
    ("separator", "encoding"),
    nightly_except(
        [[";", "utf-8-sig"], [";", "cp1252"], ["\t", "utf-16"], ["|", "utf-8"], [",", "cp1251"]], ["\t", "utf-16"]
    ),
)
def test_items_of_any_separator_and_encoding(tmp_path: Path, opened, separator: str, encoding: str):
    word = "снег" if encoding == "cp1251" else "Müller, façade"
    lines = [separator.join(("id", "caption"))] + [f'k{i}{separator}"{word} {i}"' for i in range(N)]
    (tmp_path / "items.csv").write_text("\n".join(lines) + "\n", encoding=encoding)
    answer, found = opened(*npy(tmp_path), "--items", str(tmp_path / "items.csv"))
    assert list(found.items.id) == [f"k{i}" for i in range(N)]
    assert list(found.items.caption) == [f"{word} {i}" for i in range(N)]
    assert answer["note"] == ""


@pytest.mark.parametrize("ending", nightly_except(["jsonl", "parquet"], "jsonl"))
def test_the_caption_of_a_row_with_several_is_the_first_and_the_note_says_so(tmp_path: Path, opened, ending: str):
    rows = [{"captions": [f"a {i}", f"b {i}"], "tags": ["x", "y"][: i % 3], "box": {"w": 1}} for i in range(N)]
    rows[1] |= {"captions": []}
    rows[2] |= {"captions": None, "tags": None}
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "items.parquet")
    else:
        (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer, found = opened(*npy(tmp_path), "--items", str(tmp_path / f"items.{ending}"))
    assert list(found.items.caption) == ["a 0", "", "", *(f"a {i}" for i in range(3, N))]
    assert found.items.metadata["captions"][3] == "a 3, b 3"
    assert list(found.items.metadata["tags"])[3:6] == ["", "x", "x, y"]
    assert "'captions' holds lists: the caption of a row is the first" in answer["note"]
    assert "Left out, as they hold neither texts, numbers nor vectors: box." in answer["note"]


def test_several_arrays_of_one_side_are_not_chosen_from_by_guess(tmp_path: Path, capsys):
    table = {"image_a": list(IMAGE), "image_b": list(TEXT), "image_size": [[8, 9]] * N}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    words = ["open", "vectors", "--image", str(tmp_path / "t.parquet"), "--workspace", str(tmp_path / "ws")]
    assert main(words) == 2
    assert "several of images: image_a (40 x 6), image_b (40 x 6)." in capsys.readouterr().err
    assert main([*words, "--image-column", "image_b"]) == 0


def test_items_written_on_windows_find_their_pictures(tmp_path: Path, opened):
    (tmp_path / "pics" / "a").mkdir(parents=True)
    for i in range(N):
        (tmp_path / "pics" / "a" / f"{i}.jpg").touch()
    (tmp_path / "items.csv").write_text("path\n" + "".join(f"a\\{i}.jpg\n" for i in range(N)))
    _, found = opened(*npy(tmp_path), "--items", str(tmp_path / "items.csv"), "--pictures", str(tmp_path / "pics"))
    assert all(Path(path).is_file() for path in found.items.path)


@few_plain(
    1,
    ("lines", "said"),
    [
        (["id"] + [str(i // 2) for i in range(N)], "names 20 rows twice"),
        (["id,x"] + [f"{i or ''},y" for i in range(N)], "empty cells"),
        (["who,what"] + ["a,b"] * N, "there are who, what"),
    ],
)
def test_it_says_why_rows_are_known_by_number(tmp_path: Path, opened, lines: list[str], said: str):
    (tmp_path / "items.csv").write_text("\n".join(lines) + "\n")
    answer, found = opened(*npy(tmp_path), "--items", str(tmp_path / "items.csv"))
    assert said in answer["note"]
    assert found.items.id.tolist() == list(range(N))


@few_plain(2, "kind", ["i1", "u1", "u2", ">i4", "i8"])
def test_quantized_vectors_are_vectors(tmp_path: Path, opened, kind: str):
    whole = np.abs(IMAGE * 20).astype(kind)
    np.save(tmp_path / "q.npy", whole)
    _, found = opened("--image", str(tmp_path / "q.npy"))
    np.testing.assert_allclose(found.image, unit(whole), atol=1e-6)


def test_numbers_of_tokens_are_no_vectors_where_there_are_others(tmp_path: Path):
    save_file({"input_ids": (IMAGE * 9).astype(np.int64), "embeds": IMAGE}, tmp_path / "x.safetensors")
    found = find(tmp_path / "x.safetensors")
    assert found.image is not None
    assert found.image.name == "embeds"


def test_data_of_any_name_stay_in_the_folder_of_the_run(tmp_path: Path, opened):
    for name in ("../../../out", "a/b\\c:*?", "  "):
        answer, found = opened(*npy(tmp_path), "--called", name)
        assert found.dataset == (name.strip() or "a")
        run = Workspace(tmp_path / "ws").runs.get(answer["id"]).folder
        assert [one.name for one in run.joinpath("snapshots").iterdir()], "it lies right there"
        assert all((one / "image.npy").is_file() for one in run.joinpath("snapshots").iterdir())
    assert not (tmp_path / "out-vectors@000000").exists()
    assert snapshot_name(dataset="a/b", split="s", step=1) != snapshot_name(dataset="a_b", split="s", step=1)


def test_vectors_that_cannot_be_opened_leave_their_name(tmp_path: Path, opened, capsys):
    np.save(tmp_path / "a.npy", np.zeros((N, D), np.float32))
    words = ["--image", str(tmp_path / "a.npy"), "--name", "mine"]
    assert main(["open", "vectors", *words, "--workspace", str(tmp_path / "ws")]) == 2
    assert "Fewer than two rows are vectors" in capsys.readouterr().err
    assert not list((tmp_path / "ws" / "runs").iterdir())
    np.save(tmp_path / "a.npy", IMAGE)
    assert opened(*words)[0]["name"] == "mine"


def test_rows_without_a_direction_are_left_out_and_counted(tmp_path: Path, opened):
    broken = IMAGE.copy()
    broken[2], broken[5, 1], broken[7, 0] = 0, np.nan, np.inf
    np.save(tmp_path / "a.npy", broken)
    answer, found = opened("--image", str(tmp_path / "a.npy"))
    assert (answer["kept"], answer["left_out"]) == (N - 3, 3)
    assert not {2, 5, 7} & set(found.items.id.tolist())
    assert is_vector(broken).sum() == N - 3


def test_a_sample_is_drawn_from_the_whole_and_is_the_same_again(tmp_path: Path, opened):
    many = np.arange(2_000, dtype=np.float16).reshape(1_000, 2) + 1
    np.save(tmp_path / "a.npy", many)
    _, found = opened("--image", str(tmp_path / "a.npy"), "--rows", "100")
    rows = sample(1_000, 100)
    assert found.sampled
    assert found.items.id.tolist() == rows.tolist()
    assert len(set(rows.tolist())) == 100
    assert rows[0] < 10
    assert rows[-1] >= 990
    np.testing.assert_allclose(found.image, unit(many[rows]), atol=1e-6)
    assert np.abs(np.linalg.norm(unit_rows(many), axis=1) - 1).max() < 1e-6


def test_a_large_map_is_not_read(tmp_path: Path, opened):
    """Ten million rows that take no room on the disk, but for the sampled ones."""
    file = tmp_path / "big.npy"
    whole = np.lib.format.open_memmap(file, mode="w+", dtype=np.float16, shape=(10_000_000, 512))
    rows = sample(len(whole), 50)
    whole[rows] = RNG.normal(size=(50, 512)).astype(np.float16)
    whole.flush()
    answer, found = opened("--image", str(file), "--rows", "50")
    assert (answer["rows"], answer["kept"], found.sampled) == (10_000_000, 50, True)
    np.testing.assert_allclose(found.image, unit(whole[rows]), atol=1e-3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--image", "{a}", "--text", "{short}"], "40 images and 39 texts"),
        (["--image", "{a}", "--text", "{wide}"], "Images have 6 numbers and texts 9"),
        (["--image", "{line}"], "holds no vectors but line (6, float32)"),
        (["--image", "{cube}"], "holds no vectors but cube (40 x 2 x 3, float32)"),
        (["--image", "{one}"], "One row was found"),
        (["--image", "{objects}"], "Save it as float32"),
        (["--image", "{a}", "--rows", "0"], "choose at least 2"),
        (["--image", "{a}", "--preset", "scenes"], "--preset belongs to models"),
        (["--image", "{a}", "--set", "data.rows"], "write FIELD=VALUE"),
        (["--image", "{a}", "--items", "{none}"], "No such file"),
        (["--image", "{parts}"], "img_emb_1.npy holds 40 x 9"),
        (["--image", "{missing}"], "cannot be read"),
        (["--image", "ann.hdf5"], "numpy.save('train.npy', h5py.File("),
        (["--image", "{a}", "--items", "{two}"], "2 lines and the vectors 40 rows"),
        (["--image", "{liar}"], "its header claims"),
        (["--image", "{several}"], "several arrays"),
        ([], "Name the vectors"),
    ],
)
def test_what_cannot_be_opened_says_why_and_leaves_no_run(tmp_path: Path, capsys, words: list[str], said: str):
    arrays = {"a": IMAGE, "short": TEXT[:-1], "wide": np.ones((N, 9), np.float32), "line": IMAGE[0], "liar": IMAGE}
    arrays |= {"cube": IMAGE.reshape(N, 2, 3), "one": IMAGE[:1], "objects": np.array([None, "a"], object)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=True)
    (tmp_path / "parts" / "img_emb").mkdir(parents=True)
    for number, array in enumerate((IMAGE, arrays["wide"])):
        np.save(tmp_path / "parts" / "img_emb" / f"img_emb_{number}.npy", array)
    (tmp_path / "liar.npy").write_bytes((tmp_path / "liar.npy").read_bytes()[:-8])
    (tmp_path / "two.csv").write_text("id\n1\n2\n")
    np.savez(tmp_path / "several.npz", u=IMAGE, v=TEXT)
    places = {name: str(tmp_path / f"{name}.npy") for name in [*arrays, "missing"]}
    places |= {"two": str(tmp_path / "two.csv"), "several": str(tmp_path / "several.npz")}
    places |= {"parts": str(tmp_path / "parts"), "none": str(tmp_path / "none.csv")}
    given = [word.format(**places) for word in words]
    assert main(["open", "vectors", *given, "--workspace", str(tmp_path / "ws")]) == 2
    assert said in capsys.readouterr().err
    assert not Workspace(tmp_path / "ws").runs.all()


def test_vector_sets_of_different_width_are_compared_by_the_measures_that_allow_it(tmp_path: Path, opened, capsys):
    turn = np.linalg.qr(RNG.normal(size=(9, 9)))[0][:D]
    np.save(tmp_path / "small.npy", IMAGE)
    np.save(tmp_path / "wide.npy", (IMAGE @ turn).astype(np.float32))
    for name in ("small", "wide"):
        opened("--image", str(tmp_path / f"{name}.npy"), "--called", "same", "--name", name)
    words = ["analyze", "representation-similarity", "1", "2", "--json", "--workspace", str(tmp_path / "ws")]
    assert main([*words, "--measure", "cka"]) == 0
    text = capsys.readouterr().out
    assert "1.0" in text or "0.99" in text, "a rotation into more dimensions keeps every angle"


def test_what_needs_a_model_says_so(tmp_path: Path, opened, capsys):
    opened(*npy(tmp_path))
    ws = ["--workspace", str(tmp_path / "ws")]
    assert main(["analyze", "search", "1", "--query-text", "a", *ws]) == 2
    assert "has only embeddings, no model" in capsys.readouterr().err
    assert main(["resume", "1", *ws]) in (0, 2)


def test_an_opened_set_can_be_read_without_its_files(tmp_path: Path, opened):
    answer, before = opened(*npy(tmp_path))
    (tmp_path / "a.npy").unlink()
    workspace = Workspace(tmp_path / "ws")
    assert np.array_equal(read_snapshot(before.folder).image, before.image)
    assert workspace.runs.config_of(answer["id"]).data.image_vectors == str(tmp_path / "a.npy")


def test_names_tell_the_sides(tmp_path: Path):
    np.savez(tmp_path / "x.npz", **{"context": IMAGE, "caption_emb": TEXT})
    found = find(tmp_path / "x.npz")
    assert found.image is None
    assert found.text is not None
    assert found.text.name == "caption_emb"


SHARED = np.repeat(np.arange(N // 3), 3)
"""Three captions a picture."""


def table(folder: Path, **columns: list[Any]) -> list[str]:
    image, text = unit(IMAGE[: N // 3])[SHARED], unit(TEXT[: len(SHARED)])
    np.save(folder / "a.npy", image)
    np.save(folder / "b.npy", text)
    columns = {"caption": [f"caption {row}" for row in range(len(SHARED))], **columns}
    pq.write_table(pa.table(columns), folder / "items.parquet")
    return ["--image", str(folder / "a.npy"), "--text", str(folder / "b.npy"), "--items", str(folder / "items.parquet")]


def shared_recall(sides: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    """Return the shares of pictures and of captions whose right answer comes first, by a float64 loop."""
    image, text = (np.float64(side) for side in sides)
    cosines, pictures = image[::3] @ text.T, N // 3
    by_image = [max(cosines[p][SHARED == p]) > max(cosines[p][SHARED != p]) for p in range(pictures)]
    by_text = [cosines[:, row].argmax() == SHARED[row] for row in range(len(SHARED))]
    return float(np.mean(by_image)), float(np.mean(by_text))


@few_plain(
    2,
    ("columns", "equality"),
    [
        ({}, "equal embeddings"),
        ({"path": [f"p{p}.png" for p in SHARED]}, "equal paths"),
        ({"path": [f"C:\\data\\p{p}.png" for p in SHARED]}, "equal paths"),
        ({"pixels": [f"{p:016x}" for p in SHARED], "path": ["all.tar"] * len(SHARED)}, "equal pixels"),
        ({"pixels": [224 * 224] * len(SHARED), "path": [f"p{p}.png" for p in SHARED]}, "equal paths"),
        ({"path": ["shard-00001.parquet"] * len(SHARED)}, "equal paths"),
        ({"path": [f"p{p}.png" if p % 2 else None for p in SHARED]}, "equal paths"),
    ],
    ids=["vectors", "paths", "windows", "pixels", "number-of-pixels", "one-table", "some-paths"],
)
def test_pictures_with_three_captions_are_one_however_that_is_known(tmp_path: Path, opened, columns, equality: str):
    answer, found = opened(*table(tmp_path, **columns))
    assert f"{len(SHARED)} pairs: {N // 3} pictures ({equality}), {len(SHARED)} captions." in answer["note"]
    assert units_of(found).picture.tolist() == SHARED.tolist()
    assert list(found.items.path) == [""] * len(SHARED), "no file is opened for it"
    values = Workspace(tmp_path / "ws").results.last_values(answer["id"])
    assert (values["val/image_to_text_R@1"], values["val/text_to_image_R@1"]) == pytest.approx(
        shared_recall((found.image, found.text))
    )


def test_a_picture_that_was_embedded_in_other_batches_is_one_by_its_path(tmp_path: Path, opened):
    words = table(tmp_path, path=[f"p{p}.png" for p in SHARED])
    image = np.load(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", image + np.float32(1e-5) * np.random.default_rng(0).standard_normal(image.shape))
    assert units_of(opened(*words)[1]).picture.tolist() == SHARED.tolist()


OTHERS = ["image_name", " Image_Name", "image_id", "cocoid", "key"]


@pytest.mark.parametrize("column", nightly_except(OTHERS, "image_id"))
def test_a_column_of_another_program_tells_pictures_that_were_embedded_in_other_batches(
    tmp_path: Path, opened, column: str
):
    """Flickr and COCO tables: numbers and names of pictures repeat, and equal pictures differ by rounding."""
    words = table(tmp_path, **{column: [1000 + int(p) if "id" in column else f"{p}.jpg" for p in SHARED]})
    image = np.load(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", image + np.float32(1e-5) * np.random.default_rng(0).standard_normal(image.shape))
    answer, found = opened(*words)
    assert units_of(found).picture.tolist() == SHARED.tolist()
    assert f"{N // 3} pictures" in answer["note"]


def test_an_id_that_repeats_on_different_pictures_makes_them_not_one(tmp_path: Path, opened):
    np.save(tmp_path / "a.npy", IMAGE)
    pq.write_table(pa.table({"id": [str(p // 4) for p in range(N)]}), tmp_path / "items.parquet")
    _, found = opened("--image", str(tmp_path / "a.npy"), "--items", str(tmp_path / "items.parquet"))
    assert units_of(found).count("picture") == N


def test_five_captions_a_picture_as_numpy_and_a_list_count_as_clip_benchmark_does(tmp_path: Path, opened):
    """Where no caption repeats, our recalls are those of CLIP_benchmark: each caption asks, each picture once."""
    rng, pictures, width = np.random.default_rng(3), 20, 12
    shown, rows = rng.normal(size=(pictures, width)), np.repeat(np.arange(pictures), 5)
    said = shown[rows] + 1.3 * rng.normal(size=(len(rows), width))
    np.save(tmp_path / "a.npy", np.float32(shown[rows]))
    np.save(tmp_path / "b.npy", np.float32(said))
    lines = [f"{1000 + picture}.jpg,caption {row}" for row, picture in enumerate(rows)]
    (tmp_path / "items.csv").write_text("\n".join(["image,caption", *lines]), encoding="utf-8")
    given = ("--image", str(tmp_path / "a.npy"), "--text", str(tmp_path / "b.npy"))
    answer, found = opened(*given, "--items", str(tmp_path / "items.csv"))
    cosines = unit(shown) @ unit(said).T
    logged = Workspace(tmp_path / "ws").results.last_values(answer["id"])
    peer = clip_benchmark_recalls(found.image, found.text, matching_of(found))
    for k in (1, 5, 10):
        by_image = np.mean([(rows[np.argsort(-cosines[p])[:k]] == p).any() for p in range(pictures)])
        by_text = np.mean([p in np.argsort(-cosines[:, row])[:k] for row, p in enumerate(rows)])
        assert logged[f"val/image_to_text_R@{k}"] == pytest.approx(by_image)
        assert logged[f"val/text_to_image_R@{k}"] == pytest.approx(by_text)
        if k < 10:
            assert peer[f"text_retrieval_recall@{k}"] == pytest.approx(by_image)
            assert peer[f"image_retrieval_recall@{k}"] == pytest.approx(by_text)


def steps_of(folder: Path, files: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    for name, array in files.items():
        np.save(folder / name, array)
    return folder


def test_a_folder_of_steps_is_one_run_with_its_steps(tmp_path: Path, opened):
    turned = {10: IMAGE, 2: IMAGE + TEXT, 300: TEXT}
    folder = steps_of(tmp_path / "v", {f"step_{step:05d}.npy": array for step, array in turned.items()})
    np.save(tmp_path / "text.npy", TEXT)
    answer, _ = opened("--image", str(folder), "--text", str(tmp_path / "text.npy"))
    store = Workspace(tmp_path / "ws")
    snapshots = store.results.snapshots(answer["id"])
    assert ([snapshot.step for snapshot in snapshots], answer["steps"]) == ([2, 10, 300], 3)
    for snapshot in snapshots:
        np.testing.assert_allclose(read_snapshot(snapshot.folder).image, unit(turned[snapshot.step]), atol=1e-6)
    steps, recalls, _ = store.results.series(answer["id"], "val/image_to_text_R@1")
    expected = [(unit(turned[step]) @ unit(TEXT).T).argmax(axis=1) == np.arange(N) for step in (2, 10, 300)]
    assert (steps.tolist(), recalls.tolist()) == ([2, 10, 300], [pytest.approx(right.mean()) for right in expected])
    row = store.runs.get(answer["id"])
    assert (row.step, row.status, row.last, row.best) == (300, "finished", recalls[-1], max(recalls))


def test_each_step_may_have_a_file_of_each_side(tmp_path: Path, opened):
    files = {
        f"{side}_step-{step}.npy": IMAGE * 1.0 if side == "image" else TEXT
        for side in ("image", "text")
        for step in (1, 2)
    }
    answer, found = opened("--image", str(steps_of(tmp_path / "v", files)))
    assert answer["steps"] == 2
    np.testing.assert_allclose(found.text, unit(TEXT), atol=1e-6)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"step_1.npy": IMAGE, "step_2.npy": IMAGE[:5]}, "Step 2 has 5 rows"),
        ({"step_1.npy": IMAGE, "step_1_a.npy": IMAGE}, "are of one step"),
        ({"image_step_1.npy": IMAGE, "text_step_2.npy": TEXT}, "no file of"),
        ({"step_1.npy": IMAGE, "other.npy": IMAGE}, "several arrays"),
    ],
)
def test_steps_that_do_not_fit_are_named(tmp_path: Path, files: dict[str, np.ndarray], words: str, capsys):
    folder = steps_of(tmp_path / "v", files)
    assert main(["open", "vectors", "--image", str(folder), "--workspace", str(tmp_path / "ws")]) == 2
    assert words in capsys.readouterr().err


def test_a_step_is_added_to_a_run_of_vectors(tmp_path: Path, opened, capsys):
    answer, _ = opened(*npy(tmp_path))
    again = ["open", "vectors", *npy(tmp_path), "--workspace", str(tmp_path / "ws"), "--into", str(answer["id"])]
    assert main([*again, "--step", "7", "--json"]) == 0
    store = Workspace(tmp_path / "ws")
    assert [snapshot.step for snapshot in store.results.snapshots(answer["id"])] == [0, 7]
    assert [row.step for row in store.runs.all()] == [7]
    capsys.readouterr()
    np.save(tmp_path / "wide.npy", np.ones((N, D + 1), np.float32))
    wide = ["open", "vectors", "--image", str(tmp_path / "wide.npy"), "--workspace", str(tmp_path / "ws")]
    for refused in (again, [*again, "--step", "-1"], [*wide, "--into", str(answer["id"]), "--step", "8"]):
        assert main(refused) == 2
    assert (store.runs.get(answer["id"]).status, len(store.runs.all())) == ("finished", 1)


def named_npz(folder: Path, names: dict[str, list[str]]) -> list[str]:
    for side, vectors in (("image", IMAGE), ("text", TEXT)):
        np.savez(folder / f"{side}.npz", features=vectors, ids=np.array(names[side]))
    return ["--image", str(folder / "image.npz"), "--text", str(folder / "text.npz")]


def named_tables(folder: Path, names: dict[str, list[str]]) -> list[str]:
    for side, vectors in (("image", IMAGE), ("text", TEXT)):
        more = {"caption": [f"of {name}" for name in names[side]]} if side == "text" else {}
        pq.write_table(pa.table({"id": names[side], "embedding": list(vectors), **more}), folder / f"{side}.parquet")
    return ["--image", str(folder / "image.parquet"), "--text", str(folder / "text.parquet")]


def named_items(folder: Path, names: dict[str, list[str]]) -> list[str]:
    pq.write_table(pa.table({"id": names["text"], "caption": names["text"]}), folder / "items.parquet")
    return [*named_npz(folder, dict.fromkeys(names, names["image"])), "--items", str(folder / "items.parquet")]


@pytest.mark.parametrize("write", [named_npz, named_tables, named_items])
@pytest.mark.parametrize("rows", [N, 20], ids=["all", "sampled"])
def test_rows_that_two_files_name_in_another_order_are_no_pairs(
    tmp_path: Path, opened, capsys, write: Callable[..., list[str]], rows: int
):
    ids = [f"k{row}" for row in range(N)]
    words = [*write(tmp_path, {"image": ids, "text": ids[::-1]}), "--rows", str(rows)]
    assert main(["open", "vectors", *words, "--workspace", str(tmp_path / "ws")]) == 2
    assert "Two files name the same rows in another order: where one has 'k" in capsys.readouterr().err
    answer, found = opened(*write(tmp_path, {"image": ids, "text": ids}))
    assert answer["rows"] == N
    assert found.items.id.tolist() == ids
    if write is named_tables:  # the table of texts alone has them
        assert list(found.items.caption) == [f"of {name}" for name in ids]


def test_ids_of_captions_beside_those_of_pictures_name_other_rows(tmp_path: Path, opened):
    images, captions = [f"k{row // 2}" for row in range(N)], [f"k{row}" for row in range(N)]
    answer, found = opened(*named_npz(tmp_path, {"image": images, "text": captions}))
    np.testing.assert_allclose(found.text, unit(TEXT), atol=1e-6)
    assert answer["kept"] == N
