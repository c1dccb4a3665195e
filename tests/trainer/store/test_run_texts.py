"""What no command would take is cleaned where a run folder is imported or rebuilt."""

from __future__ import annotations

import json

import pytest

from trainer.store import RunLog, StoreError, Workspace
from trainer.store.run_texts import acts, cleaned, cleaned_columns, is_tag
from trainer.untrusted.files import spelled

pytestmark = pytest.mark.slow

EVIL = "\x1b[2J\x1b]52;c;AAAA\x07 \u202e\u2028\x9b31m\x7f"


def test_signs_that_act_are_spelled_and_others_stay():
    assert not acts(cleaned(EVIL))
    assert spelled(cleaned(EVIL)) == cleaned(EVIL)
    plain = "Größe 3\u00a0px, 家族 👨‍👩‍👧, نمی‌خواهم\tx\ny"
    assert (acts(plain), cleaned(plain)) == (False, plain)
    assert [is_tag(word) for word in ("paper", "v1.2", "-x", "a b", "\x1b[2J", "y" * 41)] == [True, True] + 4 * [False]
    remarks: list[str] = []
    found = cleaned_columns({"tags": f"a {EVIL} a -b c", "note": "one\ntwo", "reason": EVIL, "step": 3}, remarks)
    assert found == {"tags": "a c", "note": "one\ntwo", "reason": cleaned(EVIL), "step": 3}
    assert len(remarks) == 2


def test_a_hostile_run_folder_is_cleaned_at_import_and_rebuild(workspace: Workspace, tiny, tmp_path):
    run = workspace.runs.create(tiny)
    with RunLog.claim(workspace, run) as log:
        log.status("stopped", "as asked")
    with pytest.raises(StoreError, match="control characters"):
        workspace.runs.write_note(run, EVIL)
    folder = workspace.runs.get(run).folder
    document = json.loads((folder / "run.json").read_text())
    document |= {"tags": f"{EVIL} paper", "note": EVIL, "reason": EVIL}
    (folder / "run.json").write_text(json.dumps(document))
    rows = [workspace.runs.get(workspace.import_run(folder))]
    workspace.runs.remove(run)
    said: list[str] = []
    assert workspace.rebuild(said.append) == 1
    rows.append(workspace.runs.get(run))
    for row in rows:
        assert (row.tags, row.note, row.reason) == ("paper", cleaned(EVIL), cleaned(EVIL))
    assert any("tags" in words for words in said)
