"""Tables, tars and folders with faults: valid parts are used, the rest is reported, nothing is lost silently."""

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from corpus.tables import FAULTS, Faulty, picture

from trainer import config
from trainer.__main__ import main
from trainer.data import DataError, load
from trainer.format_detection import recognize

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def wrong(made: Faulty, workspace: Path) -> str:
    """Return what is wrong with the result; empty if nothing is."""
    try:
        data = replace(recognize(made.path), heldout_share=0.4)
        splits = load(data, image_size=16, workspace_folder=workspace, progress=lambda share, note: None)
    except (DataError, config.ConfigError) as error:
        return "" if made.used == 0 and len(str(error)) > 20 else f"refused: {error}"
    report = splits.report
    if (report.used, len(report.problems)) != (made.used, made.reported):
        return f"{report.used} used and {report.problems}, not {made.used} and {made.reported}"
    if made.first and not report.problems[0][0].startswith(made.first):
        return f"the first is said to be {report.problems[0]}, not {made.first}"
    if not all(len(reason) > 10 and place for place, reason in report.problems):
        return f"a reason is missing: {report.problems}"
    pairs = [splits.train, *splits.heldout.values()]
    try:
        for part in pairs:
            "".join((*part.captions, *part.paths, *part.labels)).encode()
    except UnicodeEncodeError as error:
        return f"cannot be stored: {error}"
    return ""


def test_what_is_sound_is_used_and_the_rest_is_named(faults, tmp_path: Path) -> None:
    names = list(FAULTS)[:: faults.every(10)]
    bad: dict[str, str] = {}
    for number, name in enumerate(names):
        folder = tmp_path / f"{number:03}"
        folder.mkdir()
        try:
            said = wrong(FAULTS[name](folder, random.Random(name)), tmp_path / "workspace")
        except Exception as error:
            said = f"crashed: {error!r}"
        if said:
            bad[name] = said[:300]

    told = "rows in = used + reported, the first bad one named by its line"
    faults.row(11, "a table, tar or folder with something wrong", told, len(names), len(names) - len(bad))
    assert len(FAULTS) >= 100
    assert not bad, "\n".join(f"{name}: {said}" for name, said in bad.items())


def test_names_do_nothing_to_a_terminal(faults, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    names = ["a\nb", "\x1b[31mred", "\x1b]0;title\x07", "תמונה \u202egnp", "\x9b2J", "sound"]
    for name in names:
        (folder / f"{name}.png").write_bytes(picture(5))
        (folder / f"{name}.txt").write_text(f"caption of {name}", encoding="utf-8")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b.png")).write_bytes(picture(6))
    code = main(["data", "show", "--data", str(folder), "--workspace", str(tmp_path / "workspace")])
    shown = capsys.readouterr().out
    assert main(["data", "show", "--data", str(tmp_path / "\x1b[31mnone"), "--workspace", str(tmp_path)]) == 2
    said = capsys.readouterr().err

    alive = {sign for sign in shown + said if not sign.isprintable() and sign != "\n"}
    faults.row(11, "names and captions steer a terminal", "spelled out", len(names) + 1, 0 if alive else len(names) + 1)
    assert code == 1
    assert f"{len(names)} pairs used; 1 not used." in shown
    assert not alive
