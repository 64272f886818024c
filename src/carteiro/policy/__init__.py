"""Decisions as pure functions and data: no clock, no chance, no I/O."""
