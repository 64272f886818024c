"""The ways in. Each judges what it is given in its own words and ends in ``path/accept.py``."""
