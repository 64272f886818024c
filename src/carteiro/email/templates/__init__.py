"""Templates: the language, its runtime, and rendering of e-mails."""
