"""Training one run: the loop, its session, what is recorded, and what stops or pauses it."""
