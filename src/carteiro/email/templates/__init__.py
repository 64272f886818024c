"""Templates: the language, its run-time, and rendering of e-mails."""
