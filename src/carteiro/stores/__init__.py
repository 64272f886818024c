"""Where messages live, and whose turn it is."""
