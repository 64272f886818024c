"""The first page: the parts of the console that the viewer may see."""

from starlette.responses import Response

from carteiro.console.page import SIGNED_IN, Pages, Show
from carteiro.console.visit import Visit


class WelcomePages(Pages):
    """The first page."""

    @Show("", needs=SIGNED_IN)
    async def show(self, visit: Visit) -> Response:
        """The parts of the console."""
        return visit.page("welcome.html")
