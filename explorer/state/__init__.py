"""The window's state: the current selection, and settings that persist between sessions."""
