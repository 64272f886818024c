"""Slow work, one small loop per file, each led by one process at a time."""
