"""The client of the trainer's server processes: one warm worker a kind, and one process a long request."""
