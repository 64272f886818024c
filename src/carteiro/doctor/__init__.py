"""Checks of an installation, for `carteiro doctor`."""
