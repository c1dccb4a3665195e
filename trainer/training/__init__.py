"""Training one run: the loop, its session, its records, and requests to stop or pause."""
