"""Takes everything over and forgets it."""
