"""Who takes e-mail over."""
