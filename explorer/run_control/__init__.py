"""Runs from the window: started, stopped, queued, polled for news."""
