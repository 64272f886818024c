"""Workers: read tickets from their topic, run their handlers, retry, and commit."""
