"""Server-sent events: one stream a page, for all of its live parts."""

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from starlette.responses import Response, StreamingResponse

from carteiro.api.in_flight import SHARE
from carteiro.api.refusal import Refusal, too_busy
from carteiro.console.hub import Hub, Topic
from carteiro.console.page import SIGNED_IN, Pages, Show
from carteiro.errors import CarteiroError

if TYPE_CHECKING:
    from carteiro.console.visit import Visit

_MOST_TOPICS: Final = 8
_LONGEST_NAME: Final = 300  # a tenant's name may be in it
_LOOKED_AT_S: Final = 5.0  # a stream ends this long after its sign-in at the latest
_LONGEST_S: Final = 900.0  # then the browser opens another one
_HEARTBEAT_S: Final = 15.0  # proxies close what is silent


class LivePages(Pages):
    """The stream of the live parts of a page."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    @Show("live", needs=SIGNED_IN)
    async def stream(self, visit: "Visit") -> Response:
        """Events named after the topics in the query, with their HTML; more when something changes."""
        names = dict.fromkeys(visit.request.query_params.getlist("topic"))
        topics = [found for each in names if (found := self._hub.topic(each[:_LONGEST_NAME]))]
        if not topics or len(names) > _MOST_TOPICS:
            raise Refusal(404, "There is no such topic")
        if not all(visit.may(each.needs) for each in topics):
            raise Refusal(403, visit.words("shell.not_for_you"))
        if self._hub.is_full(topics, visit.within()):
            raise too_busy("Too many pages are open")
        visit.request.scope.pop(SHARE).end()  # it waits, and reads nothing itself
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(
            self._events(topics, visit), headers=headers, media_type="text/event-stream"
        )

    async def _events(self, topics: list[Topic], visit: "Visit") -> AsyncIterator[str]:
        began = looked = spoke = time.monotonic()
        yield "retry: 3000\n\n"
        news = self._hub.watch(topics, visit.within(), visit)
        try:
            async for name, html in news:
                now = time.monotonic()
                if now - looked >= _LOOKED_AT_S:
                    looked = now
                    if now - began >= _LONGEST_S or not await _is_still_in(visit):
                        return
                if name:
                    spoke = now
                    yield _event(name, html)
                elif now - spoke >= _HEARTBEAT_S:
                    spoke = now
                    yield ":\n\n"
        finally:
            await news.aclose()


async def _is_still_in(visit: "Visit") -> bool:
    try:
        found = await visit.console.door.viewer_of(visit.request)
    except (TimeoutError, Refusal, CarteiroError):
        return False
    return found is not None and visit.viewer is not None and found.is_same(visit.viewer)


def _event(name: str, html: str) -> str:
    lines = "".join(f"data: {line}\n" for line in html.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
