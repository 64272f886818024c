"""Providers: the services that deliver e-mail."""
