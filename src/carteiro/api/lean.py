"""A route that FastAPI documents and that costs little more than a Starlette route."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response


class LeanRoute(APIRoute):
    """Calls ``endpoint(request)`` and sends what it returns: no dependency is solved, nothing is validated."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint itself."""
        endpoint: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return endpoint
