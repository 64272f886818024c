# ruff: noqa: INP001 - it is copied into the image as a file of its own
"""Liveness check of this container: calls the address in its settings, for API, worker or ticket lane."""

import sys
import urllib.request
from http.client import HTTPException

from carteiro.config import load
from carteiro.errors import ConfigError

_PATIENCE_S = 4


def main() -> int:
    """0 if one of the addresses that it may have answers, 1 if none does."""
    settings = load()
    for port in (settings.api.port, settings.metrics.port, settings.tickets.metrics_port):
        url = f"http://127.0.0.1:{port}/health/live"
        try:
            urllib.request.urlopen(url, timeout=_PATIENCE_S).close()
        except (OSError, HTTPException):
            continue
        return 0
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ConfigError as error:
        sys.exit(str(error))
