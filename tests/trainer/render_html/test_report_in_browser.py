"""The report in a real browser: figures are drawn, both themes exist, it prints, and it needs no network."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer.cli import report
from trainer.render_mpl.style import run_color
from trainer.store import Workspace

pytestmark = pytest.mark.slow

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


@pytest.fixture(scope="module")
def page(charted: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "comparison.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_maps", lambda *_: ([], []))  # UMAP takes long and has its own tests
        values = report.write_report(charted, [1, 2], out)
    assert values["report"] == str(out)
    assert [file.name for file in out.parent.iterdir()] == [out.name]
    return out


class Marks(HTMLParser):
    """Collects what keyboard and screen reader users of the page need."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_the_page_loads_nothing_and_can_be_read_aloud(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    marks = Marks(text)
    assert "default-src 'none'" in text
    sources = [a.get("src") for a in marks.of("img")] + [a.get("href") for a in marks.of("a")]
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert not marks.of("script") and not marks.of("link") and "@import" not in text  # noqa: PT018
    assert not re.search(r"url\((?!data:)", text)
    assert marks.of("html")[0]["lang"] == "en"
    assert all(len(a["alt"] or "") > 20 for a in marks.of("img"))
    assert all(a.get("scope") for a in marks.of("th"))
    assert len(marks.of("h1")) == len(marks.of("main")) == 1
    downloads = {a["download"] for a in marks.of("a") if "download" in a}
    assert {"metrics.json", "comparison.csv", "curves.csv", "similarity.csv"} <= downloads
    # The charted runs have no checkpoint: what needs one is named, not passed over.
    assert "Left out" in text
    assert "has no checkpoint" in text


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser is installed ({', '.join(BROWSERS)})")
    return found


def open_in(browser: str, page: Path, profile: Path, *words: str) -> None:
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
    ]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1000,2400", *words, page.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=True)


@pytest.mark.nightly
def test_figures_and_both_themes_are_drawn_and_it_prints(browser: str, page: Path, tmp_path: Path) -> None:
    grounds = {}
    for theme, scheme in (("dark", 0), ("light", 1)):
        picture = tmp_path / f"{theme}.png"
        open_in(
            browser, page, tmp_path / "p", f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={scheme}"
        )
        pixels = np.asarray(Image.open(picture).convert("RGB")).astype(int)
        grounds[theme] = pixels[3, 3].mean()
        for place in (0, 1):
            color = [int(run_color(place)[i : i + 2], 16) for i in (1, 3, 5)]
            near = (np.abs(pixels - color).max(axis=2) < 12).sum()
            assert near > 300, f"run {'AB'[place]} has no curve in the {theme} picture"
    assert grounds["dark"] < 40
    assert grounds["light"] > 240
    paper = tmp_path / "report.pdf"
    open_in(browser, page, tmp_path / "p", f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
    assert paper.stat().st_size > 20_000
