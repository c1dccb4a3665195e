"""GUI-thread event loop: background work, idle-time scheduling, stall detection and exception hooks."""
