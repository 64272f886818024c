"""Background loops, one per file; most run in one process at a time."""
