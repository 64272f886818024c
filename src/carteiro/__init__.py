"""Carteiro delivers every message or knows exactly why not."""
