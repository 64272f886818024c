"""Hands mail to a relay over SMTP."""
