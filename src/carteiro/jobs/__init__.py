"""Jobs as a worker sees them: what each kind of job needs on its way."""
