"""Kinds of jobs, as a worker runs them."""
