"""`trainer evaluate` on a run's own data: test data were held out, and trained data are identified."""

import json
import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.builders import writable_copy
from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.charts.class_task import choice_suite, run_suite
from trainer.charts.evaluation import about, evaluation
from trainer.charts.evaluation_scores import draw as draw_scores
from trainer.charts.measures.comparison import comparison
from trainer.data import DataError, load
from trainer.data.dataset_index import listing
from trainer.evaluation.learned_pairs import learned_pairs
from trainer.evaluation.run_tasks import evaluate_runs
from trainer.inference.embed import embed_sentences
from trainer.inference.model_cache import ModelCache
from trainer.messages import Evaluate
from trainer.prompt_suites import prompt_suites
from trainer.store import Workspace, read_snapshot
from trainer.store.question import hash_of
from trainer.training.fit import fit

pytestmark = pytest.mark.slow

CLASSES = {
    "red kite": (200, 40, 40),
    "blue tit": (40, 60, 200),
    "green finch": (40, 180, 60),
    "lonely owl": (90, 90, 90),
}


def quiet(_share: float, _note: str) -> None:
    pass


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a class folder whose last class has two images, none of them held out."""
    root = tmp_path_factory.mktemp("data") / "birds"
    rng = np.random.default_rng(3)
    for name, color in CLASSES.items():
        (root / name).mkdir(parents=True)
        for number in range(2 if name == "lonely owl" else 36):
            noise = rng.integers(-40, 40, (24, 24, 3))
            pixels = np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number:02}.png")
    return root


@pytest.fixture(scope="module")
def trained(birds: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return run 1, trained on the birds for a few steps."""
    workspace = Workspace(tmp_path_factory.mktemp("own") / "workspace")
    run = config.Run(
        name="birds",
        data=config.ClassFolder(path=str(birds), heldout_share=0.3),
        model=config.TinyTowers(
            image_size=32, image_width=8, text_width=32, text_heads=2, text_layers=1, context_length=12, embed_dim=16
        ),
        optimizer=config.Optimizer(batch_size=16, epochs=2, warmup_steps=1),
        watching=config.Watching(evaluate_every=100, snapshots=2, checkpoint_every=100),
        device="cpu",
    )
    fit(workspace, workspace.runs.create(run))
    return workspace


@pytest.fixture
def bare(trained: Workspace, tmp_path: Path) -> Workspace:
    """Return a writable copy, evaluated only by training."""
    return writable_copy(trained.folder, tmp_path / "workspace")


def parts(workspace: Workspace) -> tuple[set[str], set[str]]:
    """Return the locations of the run's training and held-out images, as training loads them."""
    found = load(workspace.runs.config_of(1).data, image_size=32, workspace_folder=workspace.folder, progress=quiet)
    return set(found.train.paths), set(found.heldout["heldout"].paths)


def test_every_place_asks_the_sentence_that_the_run_learned(bare: Workspace, birds: Path, capsys):
    """Curves, evaluate, prompts, calibration, classify and the window ask the captions of the training, and no others.

    The accuracy of each equals that of numpy with those captions as prompts.
    """
    names, captions = sorted(CLASSES), [f"a photo of a {name}." for name in sorted(CLASSES)]
    held = read_snapshot([row for row in bare.results.snapshots(1) if row.split == "heldout"][-1].folder)
    assert {*held.items.caption} <= {*captions}
    asked = hash_of(("a photo of a(n) {}.",))
    (logged,) = [row for row in bare.results.answers(1) if "zero_shot_acc1" in row.metrics and row.step == 10]
    assert (logged.question.templates, logged.question.sentences) == (1, asked)
    models = ModelCache(bare)
    done, _ = evaluate_runs(models, Evaluate(runs=(1,), tasks=("zero_shot",)), quiet)
    assert done[0].record.question.key == logged.question.key
    snapshot, _ = evaluate_runs(models, Evaluate(runs=(1,), tasks=("zero_shot",), snapshot=True), quiet)
    assert snapshot[0].record.question.key == logged.question.key
    for suite in (run_suite(bare, 1), choice_suite(bare, 1)):
        assert (list(suite.classes), suite.templates) == (names, ("a photo of a(n) {}.",))
    prompts = embed_sentences(models.get(1).opened, captions)
    predicted = np.array(names)[(held.image @ prompts.T).argmax(1)]
    right = float(np.mean(predicted == held.items.label))

    def told(*words: str) -> dict:
        assert main([*words, "--json", "--workspace", str(bare.folder)]) == 0
        return json.loads(capsys.readouterr().out)

    calibrated = told("analyze", "calibration", "1")["runs"][0]["accuracy"]
    ensemble = told("analyze", "prompts", "1")["runs"][0]
    assert list(ensemble)[-1] == "a photo of a(n) {}."
    accuracies = [logged.metrics["zero_shot_acc1"], done[0].record.metrics["zero_shot_acc1"], calibrated]
    accuracies += [snapshot[0].record.metrics["zero_shot_acc1"], ensemble["mean_ensemble"]]
    assert accuracies == pytest.approx([right] * 5)
    shown = told("classify", "1", str(birds / "blue tit" / "00.png"))
    assert (shown["labels"], shown["templates"]) == (names, ["a photo of a(n) {}."])
    # Classes of one's own are worded in the same sentence, prompts of other classes are not.
    shown = told("classify", "1", str(birds / "blue tit" / "00.png"), "--labels", "egret", "crow")
    assert shown["templates"] == ["a photo of a(n) {}."]


def test_other_data_are_asked_in_the_sentence_that_the_run_learned(bare: Workspace, birds: Path, tmp_path: Path):
    """A folder per class brings no prompts of its own, a folder of a published name does."""
    run = bare.runs.config_of(1)
    learned = replace(run, name="said", data=replace(run.data, template="one {} in the wild"))
    fit(bare, said := bare.runs.create(learned))
    for name in ("others", "cifar10"):
        for place, label in enumerate(("airplane", "truck")):
            folder = tmp_path / name / label
            folder.mkdir(parents=True)
            for number in range(4):
                Image.new("RGB", (24, 24), (90 * place, 30 * number, 7)).save(folder / f"{number}.png")

    def asked(run: int, data: str, suite: str = "") -> list[str]:
        wanted = Evaluate(runs=(run,), data=str(tmp_path / data), tasks=("zero_shot",), suite=suite)
        return evaluate_runs(ModelCache(bare), wanted, quiet)[0][0].record.details["templates"]

    assert asked(said, "others") == ["one {} in the wild"]
    assert asked(1, "others") == ["a photo of a(n) {}."]
    published = list(prompt_suites()["cifar10"].templates)
    assert len(published) == 18
    assert asked(said, "cifar10") == asked(said, "others", suite="cifar10") == published


@few_plain(1, "named", [False, True])
def test_a_run_is_tried_on_what_it_holds_out(bare: Workspace, birds: Path, named: bool):
    learned, held = parts(bare)
    assert len(held) > 20
    assert not learned & held
    logged = bare.results.evaluations(1)[-1].metrics
    # The link names the same folder.
    (bare.folder / "link").symlink_to(birds)
    wanted = Evaluate(
        runs=(1,), data=str(bare.folder / "link") if named else "", tasks=("zero_shot", "linear_probe", "knn")
    )
    done, left_out = evaluate_runs(ModelCache(bare), wanted, quiet)
    assert not left_out
    for one in done:
        assert (one.dataset, one.split, one.record.n, one.record.whole) == ("birds", "heldout", len(held), len(held))
        assert set(one.record.arrays["path"].tolist()) == held
        assert "trained_on" not in one.record.details
    assert done[2].record.details["stored"] == len(learned)
    assert done[0].record.metrics["zero_shot_acc1"] == pytest.approx(logged["zero_shot_acc1"], abs=1e-6)


def test_copies_of_training_pictures_that_a_run_holds_out_are_counted(tmp_path: Path, birds: Path, trained: Workspace):
    # Each picture lies there twice, under two names, so that the share may part them.
    for picture in birds.rglob("*.png"):
        for copy in "ab":
            place = tmp_path / "twice" / picture.parent.name / f"{picture.stem}{copy}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, place)
    config_ = trained.runs.config_of(1)
    config_ = replace(config_, data=replace(config_.data, path=str(tmp_path / "twice")))
    workspace = Workspace(tmp_path / "workspace")
    fit(workspace, workspace.runs.create(config_))
    learned, held = ({Path(path).relative_to(tmp_path / "twice") for path in part} for part in parts(workspace))
    both = {one for one in held if one.with_stem(one.stem[:-1] + ("b" if one.stem.endswith("a") else "a")) in learned}
    assert 0 < len(both) < len(held)
    (done,), _ = evaluate_runs(ModelCache(workspace), Evaluate(runs=(1,), tasks=("retrieval",)), quiet)
    assert done.record.n == len(held)
    assert done.record.details["trained_on"] == len(both)
    (told,) = comparison(workspace, [1]).warnings
    assert told.startswith(f"{len(both)} of {len(held)} held-out pairs show pictures")


def test_a_snapshot_is_asked_for_all_classes_of_the_data(bare: Workspace):
    logged = bare.results.evaluations(1)[-1].metrics
    done, _ = evaluate_runs(ModelCache(bare), Evaluate(runs=(1,), snapshot=True, tasks=("zero_shot",)), quiet)
    held = read_snapshot([row for row in bare.results.snapshots(1) if row.split == "heldout"][-1].folder).items.label
    assert "lonely owl" not in set(held)
    assert done[0].record.details["classes"] == sorted(CLASSES)
    assert done[0].record.metrics["zero_shot_acc1"] == pytest.approx(logged["zero_shot_acc1"], abs=1e-6)


def test_training_pairs_are_tried_only_where_they_are_asked_for_by_name(bare: Workspace, birds: Path, capsys):
    learned, held = parts(bare)
    inside = str(birds / "red kite")
    seen = len([path for path in learned if path.startswith(inside)])
    assert seen
    table = bare.folder / "all.csv"
    rows = [f"{path},a bird,{Path(path).parent.name}" for path in sorted(learned | held)]
    table.write_text("\n".join(["filepath,caption,label", *rows]))
    with pytest.raises(DataError, match=r"holds \d+ pairs that the run was trained on.*--split sample"):
        evaluate_runs(ModelCache(bare), Evaluate(runs=(1,), data=str(table), tasks=("knn",)), quiet)
    for words in (["--data-folder", str(birds)], ["--data", str(birds), "--task", "zero_shot", "--split", "train"]):
        assert main(["evaluate", "1", *words, "--workspace", str(bare.folder)]) == 0
    told = capsys.readouterr().out
    assert f"birds, split heldout, n = {len(held)} pairs, zero-shot of 4 classes × 1 template" in told
    assert f"split train, n = {len(learned)}, 4 classes × 1 template\n" in told
    assert f"trained on: {len(learned)} of these {len(learned)} pairs" in told
    assert main(["evaluate", "1", "--split", "train", "--workspace", str(bare.folder)]) == 0
    told = capsys.readouterr().out
    assert "split heldout" not in told, "the split was asked for by name, if no task was"
    assert "pairs (copies counted), which say little about new pairs" in told
    argv = ["evaluate", "1", "--task", "knn", "--split", "train", "--json", "--workspace", str(bare.folder)]
    assert main(argv) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["split"] == f"train-{entry['n']}-of-{len(learned)}"
    assert entry["trained_on"] == entry["n"] > 0


def test_a_folder_of_training_pictures_is_no_test_of_them(bare: Workspace, birds: Path, tmp_path: Path, capsys):
    learned, _ = parts(bare)
    folder = birds / "red kite"
    texts = [path.with_suffix(".txt") for path in folder.glob("*.png")]
    for text in texts:
        text.write_text("a bird")
    try:
        assert main(["evaluate", "1", "--data-folder", str(folder), "--workspace", str(bare.folder)]) == 2
    finally:
        for text in texts:
            text.unlink()
    seen = sum(Path(path).parent == folder for path in learned)
    assert f"holds {seen} pairs that birds was trained on, of 36" in capsys.readouterr().err


def packed(where: str, pictures: list[str], folder: Path) -> str:
    """Return other data with these images: copied, linked, in a tar, in a Parquet table, or saved again."""
    folder.mkdir()
    for number, path in enumerate(pictures):
        name = folder / f"{number:02}.png"
        if where == "linked":
            name.symlink_to(path)
        elif where == "saved again":
            Image.open(path).save(name, compress_level=0, pnginfo=None)
        elif where in ("copied", "tar"):
            shutil.copyfile(path, name)
        name.with_suffix(".txt").write_text(f"a bird, the {number}th")
    if where == "tar":
        with tarfile.open(folder.with_suffix(".tar"), "w") as tar:
            for file in sorted(folder.iterdir()):
                tar.add(file, file.name)
        return str(folder.with_suffix(".tar"))
    if where == "parquet":
        columns = {"image": [Path(path).read_bytes() for path in pictures], "title": [f"bird {p}" for p in pictures]}
        pq.write_table(pa.table(columns), folder.with_suffix(".parquet"))
        return str(folder.with_suffix(".parquet"))
    return str(folder)


@few_plain(1, "where", nightly_except(["copied", "linked", "tar", "parquet", "saved again"], "copied", "tar"))
def test_training_pictures_in_other_data_are_recognized(bare: Workspace, tmp_path: Path, where: str):
    learned, held = map(sorted, parts(bare))
    wanted = Evaluate(
        runs=(1,), data=packed(where, [*learned[:15], *held[:15]], tmp_path / "other"), tasks=("retrieval",)
    )
    with pytest.raises(DataError, match=r"holds \d+ pairs that the run was trained on, of \d+, copies among them"):
        evaluate_runs(ModelCache(bare), replace(wanted, split=""), quiet)
    (done,), _ = evaluate_runs(ModelCache(bare), replace(wanted, split="train"), quiet)
    among = [int(name) for name in (numbers(path) for path in done.record.arrays["path"])]
    assert done.record.details["trained_on"] == sum(number < 15 for number in among) > 0
    clean = Evaluate(runs=(1,), data=packed(where, held[:15], tmp_path / "clean"), tasks=("retrieval",))
    (done,), _ = evaluate_runs(ModelCache(bare), clean, quiet)
    assert "trained_on" not in done.record.details


def numbers(path: str) -> str:
    """Return the number that `packed` gave an image, from its location."""
    return re.findall(r"\d+", path.rpartition("other")[2].removeprefix(".tar").removeprefix(".parquet"))[-1]


def test_copies_are_known_by_their_files_where_nothing_is_prepared(bare: Workspace, tmp_path: Path):
    learned, _ = parts(bare)
    shutil.rmtree(bare.folder / "cache")
    known = learned_pairs(bare.runs.config_of(1).data, bare.folder, quiet)
    other = packed("copied", sorted(learned)[:3], tmp_path / "other")
    (tmp_path / "other" / "1.png").unlink(missing_ok=True)
    Image.new("RGB", (9, 9)).save(tmp_path / "other" / "new.png")
    (tmp_path / "other" / "new.txt").write_text("new")
    found = listing(config.Folder(path=other), bare.folder, quiet).splits["train"]
    assert known.seen(found) == [one.relative != "new.png" for one in found]


def test_the_table_says_how_many_pairs_were_trained_on(bare: Workspace):
    evaluate_runs(ModelCache(bare), Evaluate(runs=(1,), tasks=("zero_shot",), split="train"), quiet)
    learned, _ = parts(bare)
    told = about(evaluation(bare, [1], dataset="birds", split="train"))
    assert f"{len(learned)} pairs, {len(learned)} of them trained on" in told
    assert told.endswith(", 1 template")
    numbers = draw_scores(evaluation(bare, [1], dataset="birds", split="train"), None).mark("numbers")
    assert numbers.lines[0].words.endswith(f", {len(learned)} of the pairs trained on"), "on the screen, too"


def test_the_logged_the_evaluated_and_the_snapshot_number_are_one(bare: Workspace, capsys):
    """One question, one row, one value, however it is requested."""
    answers = bare.results.answers(1)
    logged = {row.question.task: row for row in answers if row.step == answers[-1].step}
    for wanted in (Evaluate(runs=(1,), tasks=("zero_shot",)), Evaluate(runs=(1,), tasks=("zero_shot",), snapshot=True)):
        (done,), _ = evaluate_runs(ModelCache(bare), wanted, quiet)
        assert done.record.question == logged["zero_shot"].question
        assert done.record.question.classes == len(CLASSES)
    rows = [row for row in comparison(bare, [1]).rows if row.name == "zero_shot_acc1"]
    assert [row.values[0] for row in rows] == [pytest.approx(logged["zero_shot"].metrics["zero_shot_acc1"], abs=1e-6)]
    argv = ["evaluate", "1", "--task", "zero_shot", "--suite", "cifar10", "--workspace", str(bare.folder)]
    assert main(argv) == 2
    assert "No class of birds is in the prompt suite cifar10" in capsys.readouterr().err
