"""The server process of the window: JSON Lines in and out, with models kept open between requests."""
