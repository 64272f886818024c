"""The HTTP API: `create_api` makes the ASGI application."""

from carteiro.intake.http.api import create_api

__all__ = ["create_api"]
