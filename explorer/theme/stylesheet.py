"""The application's stylesheet, generated from the tokens."""

from __future__ import annotations

from string import Template
from typing import Final

from explorer.theme.tokens import (
    BODY_PX,
    CONTROL_PX,
    HEADLINE_PX,
    HERO_PX,
    INSIDE,
    RADIUS,
    ROW_PX,
    SMALL_PX,
    SPACE,
    TITLE_PX,
    Tokens,
)


def marks(now: Tokens, *, dark: bool) -> dict[str, tuple[str, str]]:
    """Return the stylesheet's small images: file name -> (icon, color). Names differ per theme because of caches."""
    suffix = "dark" if dark else "light"
    return {
        f"down-{suffix}.svg": ("chevron-down", now.secondary),
        f"up-{suffix}.svg": ("chevron-up", now.secondary),
        f"right-{suffix}.svg": ("chevron-right", now.secondary),
        f"left-{suffix}.svg": ("chevron-left", now.secondary),
        f"right-off-{suffix}.svg": ("chevron-right", now.disabled),
        f"left-off-{suffix}.svg": ("chevron-left", now.disabled),
        f"down-off-{suffix}.svg": ("chevron-down", now.disabled),
        f"check-{suffix}.svg": ("check", now.accent_text),
        f"minus-{suffix}.svg": ("minus", now.accent_text),
        f"tick-{suffix}.svg": ("check", now.text),
        f"close-{suffix}.svg": ("x", now.secondary),
    }


def stylesheet(now: Tokens, *, dark: bool) -> str:
    """Return the stylesheet of the whole application for these tokens."""
    sizes = {
        "body_px": BODY_PX,
        "small_px": SMALL_PX,
        "title_px": TITLE_PX,
        "headline_px": HEADLINE_PX,
        "hero_px": HERO_PX,
        "radius": RADIUS,
        "radius_in": RADIUS - 2,
        "control": CONTROL_PX - 2,
        "row": ROW_PX,
        "space": SPACE,
        "inside": INSIDE,
        "theme": "dark" if dark else "light",
    }
    return Template(_SHEET).substitute({**vars(now), **sizes})


_SHEET: Final = """
* { outline: none; }
QWidget { color: $text; }
QDialog { background: $background; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
QLabel { background: transparent; }
QLabel:disabled { color: $disabled; }
QLabel[role="title"] { font-size: ${title_px}px; font-weight: 600; }
QLabel[role="strong"] { font-weight: 600; }
QLabel[role="secondary"] { color: $secondary; }
QLabel[role="small"] { color: $secondary; font-size: ${small_px}px; }
QLabel[role="headline"] { font-size: ${headline_px}px; font-weight: 600; }
QLabel[role="hero"] { font-size: ${hero_px}px; font-weight: 600; }
QLabel[role="heading"] { color: $secondary; font-size: ${small_px}px; font-weight: 600; }
QLabel[role="good"] { color: $good; }
QLabel[role="warn"] { color: $warn; }
QLabel[role="bad"] { color: $bad; }
QLabel[role="key"] { background: $sunken; color: $text; border: 1px solid $line; border-bottom: 2px solid $line;
    border-radius: 4px; padding: 1px 6px; font-size: ${small_px}px; }

QFrame[role="line"] { background: $line; border: none; max-height: 1px; min-height: 1px; }
QFrame[role="line-vertical"] { background: $line; border: none; max-width: 1px; min-width: 1px; }
QFrame[role="card"] { background: $surface; border: 1px solid $line; border-radius: ${radius}px; }
QFrame[role="raised"] { background: $raised; border: 1px solid $line; border-radius: ${radius}px; }
QWidget[role="surface"], QWidget[role="view"] { background: $surface; }
QWidget[role="background"] { background: $background; }

QPushButton { background: $surface; border: 1px solid $outline; border-radius: ${radius}px; padding: 0 12px;
    min-height: ${control}px; font-weight: 500; }
QPushButton:hover { background: $hover; }
QPushButton:pressed { background: $sunken; }
QPushButton:checked { background: $selection; color: $selection_text; border-color: $focus; }
QPushButton[ring="true"]:focus { border: 2px solid $focus; padding: 0 11px; min-height: 26px; }
QPushButton:disabled { color: $disabled; border-color: $line; background: $surface; }
QPushButton[role="primary"] { background: $accent; border-color: $accent; color: $accent_text; font-weight: 600; }
QPushButton[role="primary"]:hover { background: $accent_hover; border-color: $accent_hover; }
QPushButton[role="primary"]:pressed { background: $accent; }
QPushButton[role="primary"][ring="true"]:focus { border: 2px solid $text; }
QPushButton[role="primary"]:disabled { background: $sunken; border-color: $sunken; color: $disabled; }
QPushButton[role="way"] { border-color: $line; }
QPushButton[role="way"]:hover { border-color: $outline; }
QPushButton[role="way"][ring="true"]:focus { border: 2px solid $focus; }
QPushButton[role="link"] { background: transparent; border-color: transparent; padding: 0; text-align: left; }
QPushButton[role="link"][ring="true"]:focus { border: 1px solid $focus; padding: 0; min-height: ${control}px; }
QPushButton[role="link"]:hover { color: $accent; }
QPushButton[role="quiet"] { background: transparent; border-color: transparent; }
QPushButton[role="quiet"]:hover { background: $hover; }
QPushButton[role="quiet"][ring="true"]:focus { border-color: $focus; }
QPushButton::menu-indicator { image: url(theme:down-$theme.svg); width: 12px; height: 12px;
    subcontrol-origin: padding; subcontrol-position: right center; right: 8px; }

QToolButton { background: transparent; border: 1px solid transparent; border-radius: ${radius}px;
    padding: 0 6px; min-height: ${control}px; }
QToolButton:hover { background: $hover; }
QToolButton:pressed { background: $sunken; }
QToolButton:checked { background: $selection; color: $selection_text; }
QToolButton[ring="true"]:focus { border: 1px solid $focus; }
QToolButton:disabled { color: $disabled; }
QToolButton[role="outlined"] { border-color: $line; padding: 0 10px 0 8px; }
QToolButton[role="outlined"]:hover { border-color: $outline; }
QToolButton[role="outlined"][ring="true"]:focus { border: 1px solid $focus; padding: 0 10px 0 8px; }
QToolButton::menu-indicator { image: none; width: 0; }
QPushButton[role="picker"] { text-align: left; border-color: $line; padding: 0 28px 0 0; }
QPushButton[role="picker"]:hover { border-color: $outline; }
QPushButton[role="picker"][ring="true"]:focus { border: 1px solid $focus; padding: 0 28px 0 0;
    min-height: ${control}px; }
QToolButton[role="view-menu"]::menu-indicator {
    image: url(theme:down-$theme.svg); width: 14px; height: 14px; subcontrol-origin: padding;
    subcontrol-position: right center; right: 6px; }
#bar QToolButton[role="view"], #bar QToolButton[role="view-menu"] { padding: 0 8px; }
QToolButton[role="view"]:hover { background: transparent; }
#bar QToolButton[role="view-menu"] { padding-right: 26px; }
QPushButton[role="entry"] { text-align: left; padding: 0 8px; background: transparent; border-color: transparent;
    font-weight: 400; }
QPushButton[role="entry"]:hover { background: $hover; }
#moreSection { padding: 10px 8px 2px 8px; }
QPushButton[role="entry"][ring="true"]:focus { border: 1px solid $focus; padding: 0 8px; min-height: ${control}px; }

QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox {
    background: $surface; color: $text; border: 1px solid $outline; border-radius: ${radius}px;
    selection-background-color: $accent; selection-color: $accent_text; }
QLineEdit { padding: 0 8px; min-height: ${control}px; placeholder-text-color: $secondary; }
QPlainTextEdit, QTextEdit { padding: 4px; }
QAbstractSpinBox { min-height: 26px; }
QComboBox { padding: 0 4px 0 8px; min-height: ${control}px; combobox-popup: 0;
    selection-background-color: $selection; selection-color: $selection_text; }
QLineEdit:hover, QAbstractSpinBox:hover, QComboBox:hover { border-color: $secondary; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QAbstractSpinBox:focus, QComboBox:focus {
    border: 2px solid $focus; }
QLineEdit:focus { padding: 0 7px; min-height: 26px; }
QPlainTextEdit:focus, QTextEdit:focus { padding: 3px; }
QAbstractSpinBox:focus { min-height: 24px; }
QComboBox:focus { padding: 0 3px 0 7px; min-height: 26px; }
QLineEdit:disabled, QPlainTextEdit:disabled, QTextEdit:disabled, QAbstractSpinBox:disabled, QComboBox:disabled {
    color: $disabled; border-color: $line; background: $background; }
QLineEdit:read-only, QPlainTextEdit:read-only { background: $background; border-color: $line; }
QLineEdit[invalid="true"], QAbstractSpinBox[invalid="true"], QComboBox[invalid="true"] { border-color: $bad; }
QLineEdit QToolButton { min-height: 0; padding: 0; border: none; background: transparent; }
QAbstractSpinBox QLineEdit, QComboBox QLineEdit { background: transparent; border: none; padding: 0; min-height: 0; }

QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: 20px; border: none; background: transparent;
    subcontrol-origin: border; }
QAbstractSpinBox::up-button { subcontrol-position: top right; margin: 2px 2px 0 0; border-radius: 3px; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; margin: 0 2px 2px 0; border-radius: 3px; }
QAbstractSpinBox::up-button:hover, QAbstractSpinBox::down-button:hover { background: $hover; }
QAbstractSpinBox::up-arrow { image: url(theme:up-$theme.svg); width: 10px; height: 10px; }
QAbstractSpinBox::down-arrow { image: url(theme:down-$theme.svg); width: 10px; height: 10px; }
QComboBox::drop-down { border: none; width: 22px; }
QComboBox::down-arrow { image: url(theme:down-$theme.svg); width: 14px; height: 14px; }
QComboBox::down-arrow:disabled { image: url(theme:down-off-$theme.svg); }
QComboBox QAbstractItemView { background: $raised; border: none; padding: 4px;
    selection-background-color: $selection; selection-color: $selection_text; }
QComboBox QAbstractItemView::item { min-height: 28px; padding: 0 8px; border-radius: 4px; color: $text; }
QComboBox QAbstractItemView::item:disabled { color: $secondary; background: transparent; }
QComboBox QAbstractItemView::item:selected { background: $selection; color: $selection_text; }
QComboBox QAbstractItemView::item:hover:enabled { background: $hover; }

QCheckBox, QRadioButton { spacing: 8px; min-height: 22px; background: transparent; }
QCheckBox:disabled, QRadioButton:disabled { color: $disabled; }
QCheckBox::indicator, QRadioButton::indicator { width: 14px; height: 14px; border: 1px solid $outline;
    background: $surface; }
QCheckBox::indicator { border-radius: 4px; }
QRadioButton::indicator { border-radius: 8px; }
QCheckBox::indicator:hover, QRadioButton::indicator:hover { border-color: $secondary; }
QCheckBox[ring="true"]::indicator:focus, QRadioButton[ring="true"]::indicator:focus {
    border: 2px solid $focus; width: 12px; height: 12px; }
QCheckBox::indicator:checked { background: $accent; border-color: $accent; image: url(theme:check-$theme.svg); }
QCheckBox::indicator:indeterminate { background: $accent; border-color: $accent; image: url(theme:minus-$theme.svg); }
QRadioButton::indicator:checked { border: 5px solid $accent; width: 6px; height: 6px; background: $accent_text; }
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled { border-color: $line; background: $sunken; }
QGroupBox { border: none; border-top: 1px solid $line; margin-top: 22px; padding-top: 8px; font-weight: 600; }
QGroupBox::title { subcontrol-origin: margin; subcontrol-position: top left; padding: 0; }

QSlider { min-height: 22px; background: transparent; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $outline; }
QSlider::sub-page:horizontal { height: 4px; border-radius: 2px; background: $secondary; }
QSlider::handle:horizontal { width: 14px; height: 14px; margin: -6px 0; border-radius: 8px; background: $surface;
    border: 1px solid $outline; }
QSlider::handle:horizontal:hover { border-color: $text; }
QSlider[ring="true"]::handle:horizontal:focus { border: 2px solid $focus; width: 12px; height: 12px; }
QSlider::groove:vertical { width: 4px; border-radius: 2px; background: $sunken; }
QSlider::add-page:vertical { width: 4px; border-radius: 2px; background: $secondary; }
QSlider::handle:vertical { width: 14px; height: 14px; margin: 0 -6px; border-radius: 8px; background: $surface;
    border: 1px solid $outline; }
QSlider::sub-page:horizontal:disabled { background: $disabled; }

QProgressBar { background: $surface; border: 1px solid $outline; border-radius: 4px; max-height: 6px; min-height: 6px;
    color: transparent; }
QProgressBar::chunk { background: $accent; border-radius: 3px; }

QTableView, QTreeView, QListView { background: palette(base); color: palette(text); border: none;
    gridline-color: $line; selection-background-color: $selection; selection-color: $selection_text; }
QTableView::item { padding: 0 8px; border: none; border-bottom: 1px solid $line; }
QTreeView::item, QListView::item { padding: 0 8px; min-height: 28px; border: none; }
QTableView::item:hover, QTreeView::item:hover, QListView::item:hover { background: $hover; }
QTableView::item:selected, QTreeView::item:selected, QListView::item:selected {
    background: $selection; color: $selection_text; }
QTableView:focus, QTreeView:focus, QListView:focus { border: none; }
QHeaderView { background: $surface; border: none; }
QHeaderView::section { background: $surface; color: $secondary; font-size: ${small_px}px; font-weight: 600;
    border: none; border-bottom: 1px solid $outline; padding: 0 11px; min-height: 28px; }
QHeaderView::section:hover { color: $text; background: $hover; }
QHeaderView::up-arrow, QHeaderView::down-arrow { image: none; width: 0; height: 0; }
QTableCornerButton::section { background: $surface; border: none; }

QScrollArea { background: transparent; border: none; }
QScrollArea > QWidget > QWidget { background: transparent; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QScrollBar { background: transparent; border: none; margin: 0; }
QScrollBar:vertical { width: 12px; }
QScrollBar:horizontal { height: 12px; }
QScrollBar::handle { background: $outline; border-radius: 3px; margin: 3px; }
QScrollBar::handle:vertical { min-height: 32px; }
QScrollBar::handle:horizontal { min-width: 32px; }
QScrollBar::handle:hover { background: $secondary; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; border: none; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QSplitter::handle { background: $line; }
QSplitter::handle:horizontal { width: 1px; margin: 0 4px; }
QSplitter::handle:vertical { height: 1px; margin: 4px 0; }
QSplitter::handle:hover { background: $focus; }

QMenu { background: $raised; border: 1px solid $outline; border-radius: ${radius}px; padding: 4px; }
QMenu::item { min-height: 28px; padding: 0 24px 0 8px; border-radius: 4px; }
QMenu::item:selected { background: $selection; color: $selection_text; }
QMenu::item:disabled { color: $disabled; }
QMenu::icon { padding-left: 8px; }
QMenu::separator { height: 1px; background: $line; margin: 4px 8px; }
QMenu::indicator { width: 14px; height: 14px; left: 6px; }
QMenu::indicator:checked { image: url(theme:tick-$theme.svg); }
QLabel, QToolTip, QTipLabel { qproperty-textFormat: PlainText; }
QLabel#curve-readout, QLabel#truth-line { qproperty-textFormat: RichText; }
QToolTip { background: $raised; color: $text; border: 1px solid $line; padding: 4px 8px; font-size: ${small_px}px; }

QTabWidget::pane { border: none; border-top: 1px solid $line; }
QTabBar { background: transparent; border: none; }
QTabBar::tab { background: transparent; color: $secondary; border: none; border-bottom: 2px solid transparent;
    padding: 0 4px; margin-right: 16px; min-height: 30px; font-weight: 500; }
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected { color: $text; border-bottom-color: $text; }
QTabBar::tab:focus { color: $text; border-bottom-color: $focus; }
QTabBar::scroller { width: 44px; }
QTabBar QToolButton { background: $surface; border: none; border-radius: 0; min-width: 20px; padding: 0; }
QTabBar QToolButton::right-arrow { image: url(theme:right-$theme.svg); width: 14px; height: 14px; }
QTabBar QToolButton::left-arrow { image: url(theme:left-$theme.svg); width: 14px; height: 14px; }
QTabBar QToolButton::right-arrow:disabled { image: url(theme:right-off-$theme.svg); }
QTabBar QToolButton::left-arrow:disabled { image: url(theme:left-off-$theme.svg); }
QTabBar::tear { width: 0; border: none; image: none; }
QStatusBar { background: $background; border-top: 1px solid $line; color: $secondary; font-size: ${small_px}px; }
QStatusBar::item { border: none; }
QStatusBar QLabel, QStatusBar QToolButton { color: $secondary; font-size: ${small_px}px; }
QStatusBar QToolButton { min-height: 20px; padding: 0 4px; }
QStatusBar QPushButton { min-height: 18px; padding: 0 8px; font-size: ${small_px}px; }
QStatusBar QPushButton[ring="true"]:focus { min-height: 16px; padding: 0 7px; }
QStatusBar QToolButton:hover { color: $text; }
QStatusBar QProgressBar::chunk { background: $secondary; }

#rail { background: $background; border-right: 1px solid $line; }
#rail QScrollArea, #rail-views { background: transparent; }
#rail QToolButton { text-align: left; padding: 0 6px; min-height: 30px; color: $secondary; font-weight: 500; }
#rail QToolButton:hover { color: $text; background: $hover; }
#rail QToolButton:checked { color: $selection_text; background: $selection; font-weight: 600; }
#bar { background: $surface; border-bottom: 1px solid $line; }
#bar QToolButton, #bar QPushButton, #bar QComboBox { min-height: 26px; }
#bar QToolButton { padding: 0 5px; }
#bar QComboBox, #bar QPushButton, #bar QAbstractSpinBox { border-color: $line; }
#bar QComboBox:hover, #bar QPushButton:hover, #bar QAbstractSpinBox:hover { border-color: $outline; }
#bar QComboBox:focus { min-height: 24px; border-color: $focus; }
#bar QPushButton[ring="true"]:focus { min-height: 24px; }
#morePanel { background: $raised; border: 1px solid $outline; }
#hoverPicture { background: $sunken; border-radius: ${radius}px; }
#banner { background: $raised; border: none; border-top: 1px solid $line; }
#banner QPushButton, #banner QToolButton { min-height: 22px; }
#banner QPushButton[ring="true"]:focus { min-height: 20px; }
#banner[tone="bad"] { background: $bad_soft; border-color: $bad; }
#banner[tone="warn"] { background: $warn_soft; border-color: $warn; }
#banner[tone="good"] { background: $good_soft; border-color: $good; }
#methodPanel QTextBrowser { border: none; background: transparent; padding: 0; }
#methodPanel QTextBrowser:focus { border: none; padding: 0; }
#palette, #shortcutSheet, #methodPanel, #shortcutEditor, #settingsSheet, #chartGallery {
    background: $raised; border: 1px solid $outline; border-radius: 10px; }
#palette QLineEdit, #chartGallery QLineEdit { border: none; background: transparent; font-size: 15px;
    min-height: 40px; padding: 0 8px; }
#palette QListView, #chartGallery QListView { background: transparent; border: none; }
#chartGallery QListView::item { padding: 0; }
#palette QListView::item { min-height: 32px; border-radius: ${radius}px; }
#finder { background: $raised; border: 1px solid $outline; border-radius: ${radius}px; }
#finder QLineEdit { background: $surface; border: 1px solid $outline; padding: 0 8px; min-height: ${control}px; }
#finder QListView { background: transparent; border: none; padding: 0; }
"""
