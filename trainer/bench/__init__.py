"""Measurements that the READMEs quote: every figure a ratio or a median within one run, never a timed test."""
