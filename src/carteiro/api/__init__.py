"""The HTTP API, one file per concern; `api.create_api` makes the ASGI application."""
