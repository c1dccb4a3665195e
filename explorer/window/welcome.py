"""Messages at startup: a crash, safe mode, or damaged settings."""

from __future__ import annotations

from explorer.event_loop.exception_hooks import Hooks
from explorer.state.settings import Settings
from explorer.widgets.banner import Banner
from explorer.window.error_dialog import surroundings


def show_how_it_starts(banner: Banner, hooks: Hooks, settings: Settings, *, safe: bool) -> None:
    """Show the most severe message about this start, if any."""
    if hooks.crash:
        banner.show_message(
            "The window crashed last time.",
            "Runs were not affected. Please report the details. `explorer --safe` starts without saved settings.",
            tone="warn",
            details=f"{hooks.crash}\n\n{surroundings()}",
        )
    elif safe:
        banner.show_message(
            "This is the window in safe mode.",
            "Saved settings are not used or changed, nothing is compiled, and models load on demand.",
            tone="warn",
        )
    elif settings.damaged is not None:
        banner.show_message(
            "The settings of this window could not be read, so the defaults are used.",
            f"The damaged file is kept as {settings.damaged.name}. Runs and their data are not affected.",
            tone="warn",
        )


def show_plugin_failures(banner: Banner) -> None:
    """Say which plug-ins could not be loaded: the window opens without them."""
    from trainer import plugins

    if failures := plugins.failures():
        banner.show_message(failures[0], " ".join(failures[1:]), tone="warn")
