"""The process that serves the window: JSON lines in, JSON lines out, models kept open between two requests."""
