"""Running jobs: the worker, its slots, and tasks as a kind of job."""
