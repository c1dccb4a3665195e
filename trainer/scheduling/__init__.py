"""Scheduling of training: the queue, detached trainers, and system load. Imports no torch."""
