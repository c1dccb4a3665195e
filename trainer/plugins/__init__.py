"""Plug-ins: objectives, data sets, towers, charts and metrics of other packages, or of a file that the user names.

They come by entry points of installed packages (`GROUPS`), by `--plugin FILE`, and by the environment variable that
`--plugin` sets for the processes it starts. What lies in a workspace is never loaded; a run only remembers the name.
"""

from trainer.plugins.loaded_plugins import (
    FILES,
    GROUPS,
    LoadedPlugins,
    failures,
    load_all,
    loaded,
    module_of,
    name_files,
)

__all__ = [
    "FILES",
    "GROUPS",
    "LoadedPlugins",
    "failures",
    "load_all",
    "loaded",
    "module_of",
    "name_files",
]
