"""What no command would take is cleaned where a run folder is imported or rebuilt."""

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


def test_a_sign_of_life_without_a_known_column_changes_nothing(workspace: Workspace, tiny):
    """A place may tell nothing that is known; an UPDATE without columns said that the database is damaged."""
    run = workspace.runs.create(tiny)
    before = workspace.runs.get(run)
    assert workspace.take_over(run, {}, quick=True) == []
    assert workspace.take_over(run, {"unknown": 1, "step": "x"}, quick=True) != []
    assert workspace.runs.get(run).status == before.status


@pytest.mark.parametrize("seed", [2**53 + 1, 2**64, 10**23])
def test_whole_numbers_beyond_every_generator_are_refused_in_words(seed: int):
    from dataclasses import replace

    from trainer import config

    config.check(replace(config.Run(name="a"), seed=2**53))
    with pytest.raises(config.ConfigError, match="is too large: choose at most 9,007,199,254,740,992"):
        config.check(replace(config.Run(name="a"), seed=seed))
