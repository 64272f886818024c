"""Log lines, metrics and readiness."""
