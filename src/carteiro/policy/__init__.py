"""Decisions as pure functions and data: no clock, no randomness, no I/O."""
