"""Models and updates of a run folder that a stranger made: sizes, weights and moments that do not fit."""

import json
import re
import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SMALL

from tests.builders import writable_copy
from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.inference.open_model import open_run
from trainer.models import Blueprint, ModelError
from trainer.models.published import text_tower
from trainer.pretrained.size_limits import check_run
from trainer.store import Workspace, manifests
from trainer.training.fit import fit

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(1_800)]

MIB = 1 << 20


@pytest.fixture(scope="module")
def trained(trained_once: Callable[[str, Callable[[Path], object]], Workspace]) -> Path:
    """Return a workspace with a run of twelve updates and its checkpoints."""
    workspace = trained_once("theirs", _train)
    workspace.close()
    return workspace.folder


def _train(folder: Path) -> None:
    workspace = Workspace(folder / "workspace")
    fit(workspace, workspace.runs.create(replace(SMALL, name="theirs")))
    workspace.close()


@pytest.fixture
def theirs(trained: Path, tmp_path: Path) -> Path:
    """Return the run's folder in a copy of its workspace, which is not ours."""
    shutil.copytree(trained, tmp_path / "copy")
    return next((tmp_path / "copy" / "runs").iterdir())


def _sized(folder: Path, **sizes: object) -> None:
    """Let the configuration tell of other sizes."""
    file = folder / "config.toml"
    found = config.from_toml(file.read_text())
    for name, value in sizes.items():
        found = config.replace(found, f"model.{name}", str(value))
    file.write_text(config.to_toml(found))
    for table in folder.parents[1].glob("explorer.db*"):
        table.unlink()
    document = json.loads((folder / "run.json").read_text())
    document["config"] = config.to_toml(found)
    (folder / "run.json").write_text(json.dumps(document))
    workspace = Workspace(folder.parents[1])
    workspace.rebuild()
    workspace.close()


LARGE = {
    "a ResNet of 80 billion weights": {"image_width": 1024, "image_layers": 24},
    "a vision transformer": {"image_tower": "vit", "image_width": 1024, "image_layers": 24, "image_size": 512},
    "a text tower": {"text_width": 1024, "text_layers": 24, "text_heads": 16},
    "a shared space": {"embed_dim": 4096, "image_width": 256},
}


@few_plain(1, "what", LARGE)
def test_a_model_far_larger_than_its_weights_is_not_built(what: str, theirs: Path, capsys, tmp_path, faults) -> None:
    _sized(theirs, **LARGE[what])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (
        main(["embed", "1", "--texts", "x", "--out", str(tmp_path / "o"), "--workspace", str(theirs.parents[1])]) == 2
    )
    assert "do not belong together" in capsys.readouterr().err
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 200 * MIB
    faults.row("S6", "a run whose configuration tells of a far larger model", "refused, not built", 1, 1)


TOWERS: dict[str, dict[str, Any]] = {
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 1},
}


def _blueprint(part: str, **changes: object) -> Blueprint:
    sizes = {name: dict(values) for name, values in TOWERS.items()}
    if part:
        sizes[part] |= changes
    return Blueprint("open_clip", {"embed_dim": 16, **sizes})


BLUEPRINTS = {
    "layers without end": ("vision_cfg", {"layers": 10**9}),
    "a width of a terabyte": ("text_cfg", {"width": 10**6}),
    "many layers of a large width": ("vision_cfg", {"layers": 900, "width": 8192}),
    "a tower of another place": ("vision_cfg", {"timm_model_name": "hf-hub:evil/model"}),
    "a tower in a folder": ("vision_cfg", {"timm_model_name": "local-dir:/etc"}),
    "a text tower of another place": ("text_cfg", {"hf_model_name": "evil/model"}),
    "texts without end": ("text_cfg", {"context_length": 10**7}),
    "no number": ("vision_cfg", {"width": "x"}),
}


@few_plain(2, "what", BLUEPRINTS)
def test_sizes_of_a_published_model_are_checked_again(what: str, faults) -> None:
    part, changes = BLUEPRINTS[what]
    with pytest.raises(ModelError):
        check_run(_blueprint(part, **changes), {"x": torch.zeros(10)}, vocabulary=64, towers="both", source="theirs")
    faults.row("S6", "a run whose configuration tells of a far larger model", "refused, not built", 1, 1)


def test_sizes_that_fit_are_built() -> None:
    check_run(_blueprint(""), {}, vocabulary=64, towers="both", source="mine")


def test_a_text_tower_names_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers asks whether to run the code that `auto_map` names, and fetches kernels that a setting names."""
    transformers = pytest.importorskip("transformers")
    seen: list[dict[str, Any]] = []
    known = transformers.AutoConfig.from_pretrained

    def looked_at(folder: str, *words: Any, **options: Any) -> Any:
        seen.append(json.loads((Path(folder) / "config.json").read_text()))
        return known(folder, *words, **options)

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", looked_at)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it was asked whether to run code"))
    sizes = {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 32, "vocab_size": 64}
    code = {"auto_map": {"AutoConfig": "evil--code.Config", "AutoModel": "evil--code.Model"}}
    hostile = code | {"attn_implementation": "evil/kernel", "_attn_implementation": "evil/kernel"}
    hostile |= {"quantization_config": {"quant_method": "evil"}, "vision": code}
    try:
        text_tower(_blueprint("text_cfg", hf_model_name="x", hf_config=sizes | hostile))
    except ModelError as error:
        assert "run" not in str(error).casefold().split()  # noqa: PT017
    assert seen
    assert not {"auto_map", "attn_implementation", "_attn_implementation", "quantization_config"} & {*seen[0]}
    assert seen[0].get("vision", {}) == {}


# -- replay of an imported run ---------------------------------------------------------------------------------------


def _rewritten(checkpoint: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change what a checkpoint keeps of its training, and sign it again."""
    file = checkpoint / "training.pt"
    found = torch.load(file, weights_only=True)
    torch.save(change(found), file)
    kept = manifests.verified(checkpoint, ("model.safetensors",))
    del kept["files"]
    (checkpoint / manifests.NAME).unlink()
    manifests.write_manifest(checkpoint, kept)


def _moments(found: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    for state in found["optimizer"]["state"].values():
        state[name] = value(state[name])
    return found


def _group(found: dict[str, Any], **values: Any) -> dict[str, Any]:
    for group in found["optimizer"]["param_groups"]:
        group.update(values)
    return found


def _with(found: dict[str, Any], **values: Any) -> dict[str, Any]:
    return found | values


HOSTILE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no optimizer": lambda found: {},
    "a list": lambda found: [1],
    "an optimizer of no groups": lambda found: _with(found, optimizer={"state": {}, "param_groups": []}),
    "no moments": lambda found: _with(found, optimizer=found["optimizer"] | {"state": {}}),
    "moments of another shape": lambda found: _moments(found, "exp_avg", lambda value: value.flatten()[:1].clone()),
    "moments of a number": lambda found: _moments(found, "exp_avg_sq", lambda value: 1.0),
    "moments that are not finite": lambda found: _moments(found, "exp_avg", lambda value: value * float("nan")),
    "steps that are texts": lambda found: _moments(found, "step", lambda value: "x"),
    "a learning rate of words": lambda found: _group(found, lr="x"),
    "betas of words": lambda found: _group(found, betas=("x", "y")),
    "one beta": lambda found: _group(found, betas=(0.9,)),
    "eps of nothing": lambda found: _group(found, eps=None),
    "weights that are not there": lambda found: _group(found, params=[10**6]),
    "no generators": lambda found: _with(found, generators={}),
    "generators of texts": lambda found: _with(found, generators={"torch": "x", "python": "y"}),
    "a generator of another size": lambda found: _with(
        found, generators=found["generators"] | {"torch": torch.zeros(3, dtype=torch.uint8)}
    ),
    "a python generator of nothing": lambda found: _with(
        found, generators=found["generators"] | {"python": [3, [], 0]}
    ),
}


COMPARED = [what for what in HOSTILE if "moment" in what or what.startswith(("no optimizer", "a list"))]


@pytest.fixture(scope="module")
def imported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace of ours with the run imported."""
    folder = tmp_path_factory.mktemp("mine")
    (source,) = (trained / "runs").iterdir()
    assert main(["runs", "import", str(source), "--workspace", str(folder / "w")]) == 0
    return folder / "w"


def _replayed(folder: Path, capsys: pytest.CaptureFixture[str], step: int = 8) -> tuple[int, str]:
    code = main(["replay", "1", "--step", str(step), "--json", "--workspace", str(folder)])
    said = capsys.readouterr()
    return code, said.err


def test_an_imported_run_is_replayed(imported: Path, capsys) -> None:
    code, said = _replayed(imported, capsys)
    assert code == 0, said


@pytest.mark.parametrize("which", nightly_except(["begun with", "compared with"], "begun with"))
def test_a_replay_of_hostile_moments_is_refused_in_words(which: str, imported: Path, tmp_path, capsys, faults) -> None:
    bad = []
    # Of those that a replay comes to and does not use, one is tried; all where all faults are.
    unused_too = faults.whole or which == "begun with"
    left_out = [] if unused_too else [what for what in HOSTILE if what not in COMPARED][1:]
    tried = {what: HOSTILE[what] for what in faults.thin(list(HOSTILE), 3) if what not in left_out}
    for number, (what, change) in enumerate(tried.items()):
        folder = writable_copy(imported, tmp_path / str(number)).folder
        kept = sorted(folder.glob("runs/*/checkpoints/step_*"))
        steps = {int(re.sub(r"\D", "", one.name)): one for one in kept}
        before, after = max(step for step in steps if step < 8), min(step for step in steps if step >= 8)
        assert before > 0, "the first has no moments"
        _rewritten(steps[before if which == "begun with" else after], change)
        try:
            code, said = _replayed(folder, capsys)
        except Exception as error:  # which is what must not be
            bad.append((what, repr(error)))
            continue
        # Of the checkpoint that a replay comes to, weights and moments are compared and nothing else is used.
        unused = which == "compared with" and what not in COMPARED
        if code != 2 and not (code == 0 and unused):
            bad.append((what, f"{code} {said}"))
    faults.row(
        "S5",
        f"moments of an imported run, {which} in a replay",
        "refused in words",
        len(tried),
        len(tried) - len(bad),
    )
    assert not bad, "\n".join(map(str, bad))


FACTS: dict[str, dict[str, Any]] = {
    "a fingerprint of a list": {"fingerprint": [1]},
    "threads without end": {"sessions": [{"at": 1.0, "command": [], "git": None, "versions": {}, "threads": 10**9}]},
    "ranks of words": {"ranks": "many"},
    "steps beyond all": {"sessions": [{"at": 1e9, "command": [], "git": None, "versions": {}, "step": -(10**18)}]},
}


@few_plain(1, "what", FACTS)
def test_a_replay_of_odd_facts_ends_in_words(what: str, imported: Path, tmp_path, capsys) -> None:
    workspace = writable_copy(imported, tmp_path / "w")
    workspace.runs.add_facts(1, FACTS[what])
    workspace.close()
    code, said = _replayed(tmp_path / "w", capsys)
    assert code in (0, 2), said


@pytest.mark.parametrize("step", ["0", "-1", "13", str(2**63), "9" * 30])
def test_a_step_that_the_run_has_not_made_is_refused(step: str, imported: Path, capsys) -> None:
    try:
        code = main(["replay", "1", f"--step={step}", "--workspace", str(imported)])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_model_is_opened_as_before(trained: Path) -> None:
    workspace = Workspace(trained)
    assert open_run(workspace, 1).embed_texts(["x"]).shape == (1, 16)
    workspace.close()
