"""What comes in by the newer doors: vectors, definitions of experiments, links to views, words of agents, exports."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.state.view_link import read_link
from trainer.errors import UserError
from trainer.experiments.experiment import from_toml, to_toml
from trainer.inference.export_model import export_model
from trainer.store import Workspace
from trainer.vectors.matrices import find
from trainer.vectors.open_run import run_of

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

MIB = 1 << 20


# -- tensors that claim what their file does not hold ----------------------------------------------------------


def claims() -> dict[str, torch.Tensor]:
    few = torch.arange(24, dtype=torch.float32).reshape(6, 4)
    return {
        "rows without end, by a stride of 0": few[:1].expand(10**9, 4),
        "rows without end, of bfloat16": few[:1].bfloat16().expand(10**9, 4),
        "a matrix of one number": few.as_strided((10**6, 10**5), (0, 0)),
        "sparse": few.to_sparse(),
        "on no device": torch.empty(6, 4, device="meta"),
        "complex": few.to(torch.complex64),
        "whole numbers": few.to(torch.int64),
        "one axis": few.flatten(),
    }


def test_a_tensor_whose_numbers_are_not_in_the_file_is_no_matrix(tmp_path: Path, faults) -> None:
    file = tmp_path / "image.pt"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for tensor in claims().values():
        torch.save({"image": tensor}, file)
        with pytest.raises(UserError, match="holds no vectors"):
            find(file)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 200 * MIB
    n = len(claims())
    faults.row("S6", "a tensor whose numbers are not in its file", "refused by name, not unfolded", n, n)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_a_tensor_are_its_numbers(dtype: torch.dtype, turned: bool, tmp_path: Path) -> None:
    rows = torch.randn(8, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    kept = rows.float().T.contiguous().to(dtype).T if turned else rows
    torch.save({"image": torch.nn.Parameter(kept) if dtype == torch.float32 else kept}, tmp_path / "a.pt")
    found = find(tmp_path / "a.pt").image
    assert found is not None
    taken = found.take(np.array([1, 4, 7]))
    assert taken.dtype in (np.float16, np.float32)
    assert np.array_equal(np.asarray(taken, np.float64), rows[[1, 4, 7]].double().numpy().astype(np.float32))


# -- definitions of experiments --------------------------------------------------------------------------------

PLAIN = """name = "x"
[outcome]
metric = "image_to_text_R@1"
split = "renderings"
[[arm]]
preset = "clip-scenes"
[[arm]]
preset = "cloob-scenes"
"""
ARM = 'preset = "cloob-scenes"'
NAME, METRIC = 'name = "x"', '"image_to_text_R@1"'
WRONG = {
    "a name that steers a terminal": PLAIN.replace(NAME, 'name = "\\u001b[31m"'),
    "a name with a NUL": PLAIN.replace(NAME, 'name = "a\\u0000b"'),
    "a name of two lines": PLAIN.replace(NAME, 'name = "a\\nb"'),
    "a name that turns the writing": PLAIN.replace(NAME, 'name = "a\\u202Eb"'),
    "a name of 5,000 letters": PLAIN.replace(NAME, f'name = "{"x" * 5_000}"'),
    "a name that is a list": PLAIN.replace(NAME, "name = [1]"),
    "an outcome that steers a terminal": PLAIN.replace(METRIC, '"\\u001b]0;x"\ndirection = "up"'),
    "an outcome with a NUL": PLAIN.replace(METRIC, '"a\\u0000"\ndirection = "up"'),
    "an outcome that is a table": PLAIN.replace(METRIC, "{a = {b = 1}}"),
    "a preset that is a path": PLAIN.replace(ARM, 'preset = "../../../../etc/passwd"'),
    "a preset that is absolute": PLAIN.replace(ARM, 'preset = "/etc/passwd"'),
    "a preset with a NUL": PLAIN.replace(ARM, 'preset = "a\\u0000"'),
    "3,000 arms": PLAIN
    + "".join(f'[[arm]]\nname = "{i}"\n{ARM}\nset = {{"objective.beta" = {i + 1}}}\n' for i in range(3_000)),
    "8,000 outcomes": PLAIN + "".join(f'[[secondary]]\nmetric = "m{i}"\nsplit = "s"\n' for i in range(8_000)),
    "a billion seeds": f"most_seeds = 1000000000\n{PLAIN}",
    "a seed beyond any": f"first_seed = 99999999999999999999\n{PLAIN}",
    "no number for alpha": f"alpha = nan\n{PLAIN}",
    "an endless margin": f"margin = inf\n{PLAIN}",
    "a date of hours": f"hours = 2020-01-01\n{PLAIN}",
    "epochs without end": f"epochs = 10000000000000\n{PLAIN}",
    "a question of 300,000 letters": f'question = "{"q" * 300_000}"\n{PLAIN}',
    "50,000 fields": f"fields = [{','.join(map(str, range(50_000)))}]\n{PLAIN}",
    "data that are code": f'data = {{kind = "__class__"}}\n{PLAIN}',
    "a field of Python": PLAIN.replace(ARM, f'{ARM}\nset = {{"__class__" = 1}}'),
    "a width beyond any": PLAIN.replace(ARM, f'{ARM}\nset = {{"model.image_width" = 99999999999999999999}}'),
    "a table of 60 levels": PLAIN.replace(ARM, f"{ARM}\nset = {'{a = ' * 60}1{'}' * 60}"),
    "a configuration of 200 levels": f"{PLAIN}[[arm]]\nconfig = {'{a = ' * 200}{{}}{'}' * 200}\n",
    "both a preset and a configuration": f"{PLAIN}[[arm]]\n{ARM}\nconfig = {{}}\n",
    "a name of 30,000 dots": f"a{'.a' * 30_000} = 1",
    "2,000 lists": f"a = {'[' * 2_000}{']' * 2_000}",
    "half a letter": 'name = "\\ud800"',
    "nothing": "",
}


def test_a_hostile_definition_is_refused_in_words(faults) -> None:
    for what, text in WRONG.items():
        with pytest.raises(UserError) as told:
            from_toml(text)
        assert len(str(told.value)) < 2_000, what
    faults.row("S6", "a hostile definition of an experiment", "refused in words", len(WRONG), len(WRONG))


def test_the_plain_definition_is_read() -> None:
    made = from_toml(PLAIN)
    assert from_toml(to_toml(made)) == made


# -- links, agents, exports ------------------------------------------------------------------------------------

LINK = "contrastive-explorer://open"


LINKS = (
    f"{LINK}?a=-1",
    f"{LINK}?a=1e9",
    f"{LINK}?a=²",
    f"{LINK}?step={'9' * 17}",
    f"{LINK}?pairs=1,2,x",
    f"{LINK}?{'&'.join(f'k{i}=1' for i in range(100))}",
    f"{LINK}:99999999?view=runs",
    f"{LINK}@evil?view=runs",
    "contrastive-explorer://[::1",
    "file:///etc/passwd",
    f"{LINK}?view={'x' * 20_000}",
)


def test_a_hostile_link_is_refused_in_words(faults) -> None:
    for link in LINKS:
        with pytest.raises(UserError) as told:
            read_link(link)
        assert str(told.value).isprintable(), link
    faults.row("S6", "a hostile link to a view", "refused in words", len(LINKS), len(LINKS))


@pytest.mark.parametrize("word", ["--help", "-x", "a\0b", "\ud800", "x" * 300_000])
def test_words_of_an_agent_that_no_process_takes_are_refused(word: str, tmp_path: Path) -> None:
    tools = pytest.importorskip("trainer.agents.mcp_server", reason="the extra [mcp] is not installed")
    ask = tools._Commands(tmp_path)
    with pytest.raises(tools.CommandFailed):
        ask("runs", "show", values=[word])
    with pytest.raises(tools.CommandFailed, match="too many"):
        ask("compare", values=["1"] * 60_000)


@pytest.mark.parametrize("leads", ["nowhere", "to a folder", "to a file"])
def test_a_model_is_not_written_through_a_link(leads: str, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    if leads == "to a folder":
        target.mkdir()
    if leads == "to a file":
        target.write_text("mine")
    os.symlink(target, link)
    with pytest.raises(UserError, match="exists already"):
        export_model(Workspace(tmp_path / "w"), 1, link, "safetensors")
    assert link.is_symlink()
    assert not target.is_dir() or not [*target.iterdir()]


def test_vectors_with_no_numbers_among_them_are_opened_without_these(tmp_path: Path) -> None:
    from trainer import config
    from trainer.analysis.unit_rows import is_vector

    rows = np.ones((6, 4), np.float32)
    rows[0], rows[1], rows[2], rows[3] = np.nan, np.inf, 0, 1e38
    with np.errstate(all="raise"):
        assert is_vector(rows).tolist() == [False, False, False, False, True, True]
    np.save(tmp_path / "a.npy", rows)
    assert run_of(config.Vectors(image_vectors=str(tmp_path / "a.npy"))).name
