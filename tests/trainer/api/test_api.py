"""The public Python API, on a table of images drawn by the tests and on two runs on Scenes."""

import base64
import csv
import doctest
import gzip
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer import api as ce
from trainer import config
from trainer.__main__ import main
from trainer.api.charts import ComputedChart
from trainer.api.frames import MissingPandas
from trainer.charts import ChartError
from trainer.images import UnreadableImage
from trainer.store import Workspace

pytestmark = pytest.mark.slow  # commands, and the helper that decodes pictures, are processes

TINY = {
    "data.heldout_share": 0.25,
    "model.image_size": 32,
    "model.image_width": 8,
    "model.text_width": 32,
    "model.text_heads": 2,
    "model.text_layers": 1,
    "model.embed_dim": 16,
    "optimizer.batch_size": 8,
    "optimizer.epochs": 2,
    "device": "cpu",
}
COLORS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220), "yellow": (230, 210, 40)}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a CSV of 40 images with the captions `a red square number 3`."""
    folder = tmp_path_factory.mktemp("squares")
    rng = np.random.default_rng(5)
    with (folder / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "caption"])
        for place in range(40):
            name, color = list(COLORS.items())[place % 4]
            noise = rng.integers(-20, 20, (48, 40, 3))
            Image.fromarray((noise + color).clip(0, 255).astype(np.uint8)).save(folder / f"{place}.png")
            writer.writerow([f"{place}.png", f"a {name} square number {place}"])
    return folder / "pairs.csv"


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory) -> ce.RunHandle:
    return ce.fit(data=table, workspace=tmp_path_factory.mktemp("api") / "runs", name="squares", set=TINY)


def test_ten_lines_train_read_and_plot(run: ce.RunHandle, tmp_path: Path):
    ws = ce.workspace(run.store.folder)
    assert list(ws.runs()["name"]) == ["squares"]
    assert list(ws.runs()["status"]) == ["finished"]
    assert ws.run("squares").id == ws.run(run.id).id == next(iter(ws)).id == run.id
    assert run.row.step == run.row.total_steps > 0
    assert isinstance(run.config, config.Run)

    curves, store = run.curves(), ws.store.results
    for name in store.scalar_names(run.id):
        steps, values, _ = store.series(run.id, name)
        logged = curves.dropna(subset=[name])
        np.testing.assert_array_equal(logged["step"], steps[~np.isnan(values)])
        np.testing.assert_array_equal(logged[name], values[~np.isnan(values)])

    chart = ce.charts.hubness(run, k=3)
    chart.save(tmp_path / "hubs.csv", tmp_path / "hubs.png")
    assert (tmp_path / "hubs.png").read_bytes().startswith(b"\x89PNG")
    assert chart._repr_png_().startswith(b"\x89PNG")


def test_the_model_gives_nearly_what_the_snapshot_stores_from_paths_pillow_and_arrays(run: ce.RunHandle):
    snapshot, model = run.snapshot(), run.model()
    assert model.step == snapshot.step == run.row.step
    assert len(snapshot.items) == len(snapshot.image) == len(snapshot.text)
    paths = list(snapshot.items["path"])
    opened = [Image.open(path) for path in paths]
    arrays = [np.asarray(image.convert("RGB")) for image in opened]
    mixed = [paths[0], opened[1], arrays[2], Path(paths[3])]
    for images in (paths, opened, arrays):  # resized once here and in two steps for the snapshot
        np.testing.assert_allclose(model.encode_image(images), snapshot.image, atol=5e-4)
        np.testing.assert_allclose(model.encode_image(images), model.encode_image(paths), atol=1e-6)
    np.testing.assert_allclose(model.encode_image(mixed), model.encode_image(paths)[:4], atol=1e-5)
    np.testing.assert_allclose(model.encode_text(list(snapshot.items["caption"])), snapshot.text, atol=1e-5)
    assert model.encode_image([]).shape[0] == 0


def test_odd_pictures_in_memory_are_read_as_their_files(run: ce.RunHandle, odd_pictures: list[Path]):
    model = run.model()
    lossless = [path for path in odd_pictures if path.suffix == ".png"]
    from_files = model.encode_image(lossless)
    np.testing.assert_array_equal(model.encode_image([Image.open(path) for path in lossless]), from_files)


def test_every_chart_is_a_function_that_draws_what_the_command_exports(asked: Workspace, tmp_path: Path):
    ws = ce.workspace(asked.folder)
    a, b = ws.run("clip"), ws.run("cloob")
    chart = ce.charts.geometry(a, b, step=[0, 8])
    chart.save(tmp_path / "by_api.csv")
    more = ["--out", str(tmp_path / "by_command.csv"), "--workspace", str(asked.folder)]
    words = [*chart.command.split()[1:], *more]
    assert main(words) == 0
    rows = [list(csv.reader((tmp_path / f"by_{way}.csv").open(encoding="utf-8"))) for way in ("api", "command")]
    assert [row for row in rows[0] if not row[0].startswith("#")] == [
        row for row in rows[1] if not row[0].startswith("#")
    ]
    assert len(chart.rows()) > 10
    assert json.dumps(chart.values[0], default=str)


def test_charts_are_listed_and_say_what_is_wrong(asked: Workspace):
    run = ce.workspace(asked.folder).run("clip")
    assert "hopfield_retrieval" in dir(ce.charts)
    assert isinstance(ce.charts.toy_batch(), ComputedChart)
    assert "k: " in ce.charts.hubness.__doc__
    with pytest.raises(AttributeError, match="hubnes"):
        _ = ce.charts.hubnes
    with pytest.raises(ChartError, match="no setting 'kk'; its settings: csls, exact, k"):
        ce.charts.hubness(run, kk=3)
    with pytest.raises(ChartError, match="no snapshot at step 5"):
        ce.charts.hubness(run, ce.workspace(asked.folder).run("cloob"), step=[0, 5])
    with pytest.raises(ChartError, match="needs a run"):
        ce.charts.hubness()


def test_a_query_from_outside_is_embedded(asked: Workspace):
    chart = ce.charts.hopfield_retrieval(ce.workspace(asked.folder).run("cloob"), query_text="a red circle")
    assert "--query-text 'a red circle'" in chart.command
    assert len(chart.rows())


def test_losses_are_those_that_train():
    import torch

    rows = torch.nn.functional.normalize(torch.randn(5, 3, dtype=torch.float64), dim=1)
    loss = float(ce.losses.info_nce(rows, rows, 2.0))
    cosines = (rows @ rows.T * 2).numpy()
    expected = np.mean([np.log(np.exp(row).sum()) - row[place] for place, row in enumerate(cosines)])
    assert loss == pytest.approx(expected, abs=1e-12)


def test_what_cannot_be_read_is_named(run: ce.RunHandle, tmp_path: Path):
    model = run.model()
    (tmp_path / "broken.png").write_bytes(b"not an image")
    with pytest.raises(UnreadableImage, match=r"broken\.png: "):
        model.encode_image([tmp_path / "broken.png"])
    with pytest.raises(UnreadableImage, match="uint8 with shape"):
        model.encode_image([np.zeros((4, 4))])
    with pytest.raises(TypeError, match=r"encode_text\(\[text\]\)"):
        model.encode_text("a dog")


def test_a_run_needs_a_preset_data_or_a_configuration(tmp_path: Path):
    with pytest.raises(config.ConfigError, match="Name a preset, data or a configuration"):
        ce.fit(workspace=tmp_path)
    with pytest.raises(config.ConfigError, match="takes no preset"):
        ce.fit("clip-scenes", config=config.Run(name="a"), workspace=tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_pandas_the_sentence_says_how_to_get_it(run: ce.RunHandle, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPandas, match=r"contrastive-explorer\[notebook\]"):
        ce.workspace(run.store.folder).runs()


def test_importing_is_light():
    program = (
        "import sys; from trainer import api; print([m for m in ('torch', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("module", ["charts", "runs", "workspaces"])
def test_examples_in_docstrings_run(run: ce.RunHandle, module: str, monkeypatch):
    monkeypatch.chdir(run.store.folder.parent)
    found = doctest.testmod(importlib.import_module(f"trainer.api.{module}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 2
    assert found.failed == 0


def test_the_map_is_a_widget_with_the_data_of_the_page(run: ce.RunHandle):
    pytest.importorskip("anywidget", reason="the extra [notebook] is not installed")
    widget = ce.live_map(run, color="modality")
    data = json.loads(gzip.decompress(base64.b64decode(widget.packed)))
    assert data["maps"][0]["pairs"] == len(run.snapshot().items)
    assert all(data["pictures"])
    assert widget.pair == -1
    assert "export default" in widget._esm
    with pytest.raises(ChartError, match="Name a run"):
        ce.live_map()


@pytest.mark.timeout(1_200)
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run its cells in order, in a separate folder, on fewer pairs; torch is loaded here already."""
    path = Path(__file__).parents[3] / "assets" / "notebooks" / "first_steps.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert '"data.train_pairs": 256' in program
    monkeypatch.chdir(tmp_path)
    exec(compile(program.replace('"data.train_pairs": 256', '"data.train_pairs": 64'), str(path), "exec"), {})
    assert (tmp_path / "geometry.pdf").exists()
