"""Client of the trainer's server processes: one warm worker per kind, and one process per long request."""
