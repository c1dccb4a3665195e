from collections.abc import Callable
from importlib.metadata import version

import pytest

import explorer.__main__
import trainer.__main__
from trainer.distribution import installed


@pytest.mark.parametrize("main", [explorer.__main__.main, trainer.__main__.main], ids=["explorer", "trainer"])
def test_version_is_printed_and_nothing_starts(main: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"contrastive-explorer {version('contrastive-explorer')}\n"


def test_a_folder_of_the_source_that_is_not_installed_has_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "NAME", "a program that nobody installed")
    assert installed.version() == "0"


@pytest.mark.parametrize(
    ("words", "usual"),
    [
        ("--workspace here runs list", "runs list --workspace here"),
        ("experiment verdict --json --workspace=here duel", "experiment verdict duel --json --workspace=here"),
        ("export --workspace here curves 1 2 --out a.png", "export curves --runs 1 2 --out a.png --workspace here"),
        ("compare --plugin a.py --runs 1 2", "compare 1 2 --plugin a.py"),
    ],
)
def test_what_every_command_takes_may_stand_anywhere(words: str, usual: str) -> None:
    assert vars(trainer.__main__.parse(words.split())) == vars(trainer.__main__.parse(usual.split()))
