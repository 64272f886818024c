"""Redrive of dead letters."""
