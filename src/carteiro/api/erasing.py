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
    until = time.monotonic() + _PATIENCE_S
    page = await erase()
    if page is None:
        return None
    messages, recipients = page.messages, page.recipients
    while page.has_more and page.messages and time.monotonic() <= until:
        page = await erase() or Erased(0)  # None: the last page erased the owner, too
        messages += page.messages
        recipients += page.recipients
    document = ErasedDocument(messages=messages, recipients=recipients, has_more=page.has_more)
    return document.as_response(202 if page.has_more else 200)
