from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import pytest

import explorer.__main__
import trainer.__main__


@pytest.mark.parametrize("main", [explorer.__main__.main, trainer.__main__.main], ids=["explorer", "trainer"])
def test_version_is_printed_and_nothing_starts(main: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"contrastive-explorer {version('contrastive-explorer')}\n"
