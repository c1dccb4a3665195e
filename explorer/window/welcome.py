"""Messages at startup: a crash, safe mode, or damaged settings."""

from __future__ import annotations

from explorer.event_loop.exception_hooks import Hooks
from explorer.state.settings import Settings
from explorer.widgets.banner import Banner
from explorer.window.error_dialog import surroundings


def tell_how_it_starts(banner: Banner, hooks: Hooks, settings: Settings, *, safe: bool) -> None:
    """Show the most severe message about this start, if any."""
    if hooks.crash:
        banner.tell(
            "The window crashed the last time.",
            "Training was not touched. Please report the details. `explorer --safe` opens the window bare.",
            tone="warn",
            details=f"{hooks.crash}\n\n{surroundings()}",
        )
    elif safe:
        banner.tell(
            "This is the window in safe mode.",
            "Nothing remembered is used or changed, nothing is compiled, and models load when they are asked.",
            tone="warn",
        )
    elif settings.damaged is not None:
        banner.tell(
            "What this window remembered could not be read, so it starts afresh.",
            f"The damaged file is kept as {settings.damaged.name}. Runs and their data are not touched.",
            tone="warn",
        )
