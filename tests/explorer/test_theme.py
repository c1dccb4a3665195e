import errno
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from PySide6.QtCore import QDir, QEvent, QFile, QObject
from PySide6.QtGui import QFont, QFontInfo, QImage, QPaintEvent
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QListView, QPushButton, QWidget

from explorer import theme
from explorer.theme import icons, stylesheet
from explorer.theme.marks import MarkFiles, _replace
from explorer.theme.tokens import DARK, LIGHT, Tokens, class_colors, contrast, run_colors
from tests.explorer.widgets import add_widget
from trainer.analysis import palette
from trainer.render_mpl import style

WORDS_ON = [
    *[
        (ink, ground)
        for ink in ("text", "secondary")
        for ground in ("background", "surface", "raised", "sunken", "hover")
    ],
    *[(ink, ground) for ink in ("good", "warn", "bad") for ground in ("background", "surface", f"{ink}_soft")],
    *[("text", ground) for ground in ("good_soft", "warn_soft", "bad_soft")],
    ("accent_text", "accent"),
    ("accent_text", "accent_hover"),
    ("selection_text", "selection"),
]
CHECK = icons.svg("check", LIGHT.accent_text, 2.25)
MARKS_ON = [(mark, ground) for mark in ("outline", "focus") for ground in ("background", "surface")]


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), WORDS_ON)
def test_words_can_be_read(tokens: Tokens, ink: str, ground: str) -> None:
    assert contrast(getattr(tokens, ink), getattr(tokens, ground)) >= 4.5


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("hue", [0, 1])
def test_words_about_a_run_can_be_read(monkeypatch: pytest.MonkeyPatch, tokens: Tokens, hue: int) -> None:
    monkeypatch.setattr(theme.theme(), "tokens", tokens)
    window = QObject()
    for tone in range(palette.TONES):
        theme.take_sides(window, lambda tone=tone: [(hue, tone)])
        assert all(contrast(theme.run_ink(0, window), ground) >= 4.5 for ground in (tokens.background, tokens.surface))


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("mark", "ground"), MARKS_ON)
def test_edges_of_controls_can_be_seen(tokens: Tokens, mark: str, ground: str) -> None:
    assert contrast(getattr(tokens, mark), getattr(tokens, ground)) >= 3.0


def test_contrast_is_wcags() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.01)  # the well-known near miss
    assert contrast("#123456", "#123456") == 1


def test_runs_a_and_b_are_blue_and_orange_alike_on_the_screen_and_in_files() -> None:
    assert run_colors(False)[:2] == ("#0072b2", "#b86e00")
    assert tuple(style.run_color(place).lower() for place in range(8)) == run_colors(False)
    window = QObject()
    colors = theme.color("run_a", window).name(), theme.color("run_b", window).name()
    assert colors == run_colors(theme.theme().dark)[:2]


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("n", [1, 8, 9, 40, 200])
def test_classes_differ(n: int, dark: bool) -> None:
    colors = class_colors(n, dark)
    assert len(set(colors)) == n
    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)


@pytest.mark.parametrize(
    ("dark", "name"), [(False, "glasbey_bw_minc_20_maxl_70"), (True, "glasbey_bw_minc_20_minl_30")]
)
def test_the_colors_of_many_classes_are_those_of_colorcet(dark: bool, name: str):
    colorcet = pytest.importorskip("colorcet")
    expected = [color if isinstance(color, str) else to_hex(color) for color in getattr(colorcet, name)]
    assert class_colors(256, dark) == palette.told_apart([color.lower() for color in expected], dark)
    assert class_colors(300, dark)[256:] == class_colors(300, dark)[:44]


def test_the_stylesheet_names_no_token_that_is_not_there() -> None:
    for tokens, dark in ((LIGHT, False), (DARK, True)):
        assert "$" not in stylesheet.stylesheet(tokens, dark=dark)


def test_no_other_file_of_the_window_names_a_color() -> None:
    explorer = Path(theme.__file__).parents[1]
    named = re.compile(r"""["']#[0-9a-fA-F]{3,8}["']|Qt\.GlobalColor\.(?!transparent)|(?<![_a-z])rgba?\(""")
    found = [
        f"{file.relative_to(explorer)}: {line.strip()}"
        for file in explorer.rglob("*.py")
        if "theme" not in file.parts
        for line in file.read_text(encoding="utf-8").splitlines()
        if named.search(line) and 'startswith("#")' not in line
    ]
    assert not found


def test_a_missing_icon_says_where_to_get_it(dressed: QApplication) -> None:
    with pytest.raises(LookupError, match="lucide-static"):
        theme.icon("no-such-icon")


def test_a_shape_is_drawn_once_for_all_colors(dressed: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, svg, inks = [], icons.svg, ("#112233", "#ffeedd")
    monkeypatch.setattr(icons, "svg", lambda *shape: (drawn.append(shape), svg(*shape))[1])
    images = [icons.pixmap("info", ink, 17, 2.0, 3).toImage() for ink in inks]
    assert len(drawn) == 1
    colors = [image.pixelColor(x, y) for image in images for x in range(34) for y in range(34)]
    assert {color.name() for color in colors if color.alpha() == 255} == {*inks}
    alphas = [image.convertedTo(QImage.Format.Format_Alpha8) for image in images]
    assert alphas[0] == alphas[1]


def test_icons_and_fonts_carry_their_licenses() -> None:
    assert "ISC" in (icons.assets() / "icons" / "LICENSE").read_text()
    assert "SIL OPEN FONT LICENSE" in (icons.assets() / "fonts" / "Inter-LICENSE.txt").read_text()


def test_the_window_is_set_in_inter_with_even_figures(dressed: QApplication) -> None:
    font = theme.pixel_font(13, weight=QFont.Weight.DemiBold)
    assert QFontInfo(font).family() == "Inter"
    assert font.featureValue(QFont.Tag("tnum")) == 1


def test_even_figures_are_of_one_width(dressed: QApplication) -> None:
    from PySide6.QtGui import QFontMetricsF

    metrics = QFontMetricsF(theme.pixel_font(13))
    assert len({round(metrics.horizontalAdvance(figure), 3) for figure in "0123456789"}) == 1


def test_even_figures_widen_no_hyphen_and_no_space(dressed: QApplication) -> None:
    from PySide6.QtGui import QFontMetricsF

    even, plain = theme.pixel_font(13), theme.pixel_font(13)
    plain.unsetFeature(QFont.Tag("tnum"))
    for words in ("held-out", "No pair selected", "cloob-emoji (step)", "a.b, c: d"):
        assert QFontMetricsF(even).horizontalAdvance(words) == QFontMetricsF(plain).horizontalAdvance(words), words


def test_a_kept_icon_follows_the_theme(dressed: QApplication, qtbot) -> None:
    button = add_widget(qtbot, QPushButton("Square"))
    theme.keep_icon(button, "square", 16, "text")
    # Qt draws the text right at the icon: its right edge is empty.
    drawn = button.icon().pixmap(button.iconSize()).toImage()
    assert {drawn.pixelColor(x, 8).alpha() for x in range(drawn.width() - 4, drawn.width())} == {0}
    assert drawn.width() == 20
    light = button.icon().pixmap(16, 16).toImage()
    theme.theme().mode = "dark"
    assert button.icon().pixmap(16, 16).toImage() != light
    theme.theme().mode = "light"
    assert button.icon().pixmap(16, 16).toImage() == light


def test_a_dialog_of_a_hidden_section_has_the_new_theme_at_once(dressed: QApplication, qtbot) -> None:
    theme.theme().mode = "light"
    window = add_widget(qtbot, QWidget())
    theme.theme().divide(window)
    hidden = QWidget(window)
    window.show()
    hidden.hide()
    theme.theme().mode = "dark"
    before = hidden.styleSheet()
    dialog = QDialog(hidden)
    dialog.ensurePolished()
    QApplication.sendPostedEvents(hidden, QEvent.Type.ChildPolished)  # before any idle turn
    assert theme.theme().tokens.surface in hidden.styleSheet()
    assert hidden.styleSheet() != before


def test_a_change_of_theme_is_announced_once(dressed: QApplication, qtbot) -> None:
    heard: list[bool] = []
    theme.theme().changed.connect(lambda: heard.append(theme.theme().dark))
    theme.theme().mode = "dark"
    theme.theme().mode = "dark"
    assert heard == [True]


@pytest.fixture
def marks(dressed: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of the stylesheet's images, below a separate cache."""
    before = QDir.searchPaths("theme")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_names, **_more: str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(theme.theme(), "_marks", MarkFiles())
    QDir.setSearchPaths("theme", [])
    yield tmp_path / "cache" / "theme"
    QDir.setSearchPaths("theme", before)


def _shown(name: str) -> bytes:
    file = QFile(f"theme:{name}")
    assert file.open(QFile.OpenModeFlag.ReadOnly)
    return bytes(file.readAll())


def test_windows_share_the_drawings_of_the_stylesheet(
    dressed: QApplication, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _window in range(2):
        monkeypatch.setattr(theme.theme(), "_marks", MarkFiles())
        for mode in ("dark", "light"):
            theme.theme().apply(dressed, mode)
    folders = list(marks.iterdir())
    assert len(folders) == 1, "a window leaves nothing of its own behind"
    assert not list(marks.parents[1].glob("*-*")), "no temporary folder either"
    names = [*stylesheet.marks(LIGHT, dark=False), *stylesheet.marks(DARK, dark=True)]
    assert sorted(file.name for file in folders[0].iterdir()) == sorted(names)
    (folders[0] / "check-light.svg").write_bytes(b"<svg")
    before = (folders[0] / "up-light.svg").stat()
    theme.theme().apply(dressed, "light")
    assert _shown("check-light.svg") == CHECK, "what was damaged is mended"
    assert (folders[0] / "up-light.svg").stat().st_ino == before.st_ino, "what is whole is not written again"


def test_without_a_cache_the_drawings_lie_in_a_temporary_folder(dressed: QApplication, marks: Path) -> None:
    marks.parent.write_text("no folder")
    theme.theme().apply(dressed, "light")
    assert _shown("check-light.svg") == CHECK


def test_on_a_full_disk_the_window_is_dressed_without_drawings(
    dressed: QApplication, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: Path, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        theme.theme().apply(dressed, "dark")
    assert theme.theme().dark
    assert dressed.palette().window().color().name() == DARK.background
    assert not QFile.exists("theme:check-dark.svg")
    theme.theme().apply(dressed, "dark")
    assert QFile.exists("theme:check-dark.svg"), "once there is room they are there"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="two windows at once")
def test_of_two_windows_none_sees_half_a_drawing(marks: Path) -> None:
    drawings = {"one.svg": b"x" * 200_000}
    files = MarkFiles()
    files.write(drawings, drawings)
    file = next(marks.glob("*/one.svg"))
    windows = [_other_window(file, drawings["one.svg"]) for _ in range(2)]
    while os.waitpid(windows[0], os.WNOHANG) == (0, 0):
        assert file.read_bytes() == drawings["one.svg"]
    os.waitpid(windows[1], 0)
    assert [left.name for left in file.parent.iterdir()] == ["one.svg"]


def _other_window(file: Path, drawing: bytes) -> int:
    child = os.fork()
    if child == 0:
        try:
            for _ in range(300):
                _replace(file, drawing)
        finally:
            os._exit(0)
    return child


def test_parts_that_nobody_sees_are_dressed_later_and_those_born_later_too(dressed: QApplication, qtbot) -> None:
    whole, told = QWidget(), []

    class Hidden(QWidget):
        def recolor(self) -> None:
            told.append(theme.theme().dark)

    seen, hidden = QLabel("seen", whole), Hidden(whole)
    qtbot.addWidget(whole)
    theme.theme().divide(whole)
    theme.theme().follow(hidden.recolor)
    hidden.hide()
    whole.show()
    qtbot.waitExposed(whole)
    theme.theme().mode = "dark"
    assert not told
    assert not whole.updatesEnabled()
    hidden.show()
    assert told == [True]
    qtbot.waitUntil(whole.updatesEnabled)
    born = QLabel("born", whole)
    born.show()
    inks = {label.palette().windowText().color().name() for label in (seen, born)}
    assert inks == {DARK.text}
    popup = QListView()  # that of a completer has no window above it, and the style sheet of the start
    qtbot.addWidget(popup)
    popup.show()
    assert popup.grab().toImage().pixelColor(20, 20).name() == DARK.surface


def test_what_nobody_sees_takes_other_colors_of_runs_later(dressed: QApplication, qtbot) -> None:
    whole, told = QWidget(), []

    class Part(QWidget):
        def recolor(self) -> None:
            told.append(self.objectName())

    seen, hidden = Part(whole, objectName="seen"), Part(whole, objectName="hidden")
    qtbot.addWidget(whole)
    theme.theme().divide(whole)
    for part in (seen, hidden):
        theme.theme().follow(part.recolor)
    hidden.hide()
    whole.show()
    qtbot.waitExposed(whole)
    theme.theme().redraw()
    assert told == ["seen"]
    hidden.show()
    assert told == ["seen", "hidden"]


def test_what_was_a_window_and_became_a_part_follows_its_window(dressed: QApplication, qtbot) -> None:
    whole, panel = QWidget(), QWidget()
    words = QLabel("of a panel", panel)
    qtbot.addWidget(whole)
    theme.theme().divide(whole)
    whole.show()
    qtbot.waitExposed(whole)
    theme.theme().mode = "dark"
    qtbot.waitUntil(lambda: "dark" in panel.styleSheet())
    room = QWidget(whole)
    panel.setParent(room)
    room.show()
    panel.show()
    for tokens, mode in ((LIGHT, "light"), (DARK, "dark"), (LIGHT, "light")):
        theme.theme().mode = mode
        qtbot.waitUntil(whole.updatesEnabled)
        assert words.palette().windowText().color().name() == tokens.text


def test_a_window_paints_again_where_its_style_sheet_failed(
    dressed: QApplication, qtbot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_sheet: object, **_more: object) -> str:
        raise OSError("no room for the marks")

    class Whole(QWidget):
        painted = False

        def paintEvent(self, _event: QPaintEvent) -> None:
            self.painted = True

    whole = add_widget(qtbot, Whole())
    theme.theme().divide(whole)
    whole.show()
    theme.theme().mode = "light"
    qtbot.waitUntil(lambda: whole.painted and whole.updatesEnabled())
    with monkeypatch.context() as patch:
        patch.setattr(stylesheet, "stylesheet", full)
        whole.update()
        with pytest.raises(OSError, match="no room"):
            theme.theme().mode = "dark"
    assert not whole.updatesEnabled()
    whole.painted = False
    qtbot.waitUntil(lambda: whole.painted)
    assert whole.updatesEnabled()
