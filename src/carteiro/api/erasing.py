"""Erasing over HTTP: page by page, for at most 10 seconds a request."""

import time
from collections.abc import Awaitable, Callable

from starlette.responses import Response

from carteiro.api.documents import Document
from carteiro.model import Erased

_PATIENCE_S = 10.0


class ErasedDocument(Document):
    """The number of erased rows; ``hasMore``: repeat the request."""

    messages: int
    recipients: int
    has_more: bool


async def erased_in_pages(erase: Callable[[], Awaitable[Erased | None]]) -> Response | None:
    """Erase until nothing is left (200) or the time is over (202); None if there was nothing."""
    messages = recipients = 0
    until = time.monotonic() + _PATIENCE_S
    page = await erase()
    if page is None:
        return None
    while True:
        messages += page.messages
        recipients += page.recipients
        if not page.has_more or not page.messages or time.monotonic() > until:
            break
        following = await erase()
        if following is None:  # the last page erased the owner, too
            page = Erased(0)
            break
        page = following
    document = ErasedDocument(messages=messages, recipients=recipients, has_more=page.has_more)
    return document.as_response(202 if page.has_more else 200)
