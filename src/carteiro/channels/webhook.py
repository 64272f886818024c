"""Notices to a URL of the operator's, signed as in the Standard Webhooks scheme."""

import time
from collections.abc import Callable, Sequence

import orjson

from carteiro.errors import NotDelivered
from carteiro.model.alerts import Notice
from carteiro.policy.webhooks import VERSION, signature
from carteiro.runtime import posting
from carteiro.views import notices


class WebhookChannel:
    """See `carteiro.ports.alerts.Channel`. The receiver knows a repetition by ``webhook-id``, the notice's id."""

    def __init__(self, url: str, secret: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self._secret = secret
        self._clock = clock

    async def send(self, notice: Notice) -> None:
        """Post it; any answer but 2xx is an error."""
        body = orjson.dumps(notices.to_json(notice))
        sent_at = str(int(self._clock()))
        headers = {
            "webhook-id": notice.id,
            "webhook-timestamp": sent_at,
            "webhook-signature": f"{VERSION},{signature(self._secret, notice.id, sent_at, body)}",
        }
        async with posting.client() as client:
            fault = await posting.post(client, self._url, body, headers)
        if fault is not None:
            raise NotDelivered(fault)

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Nothing: the receiver keeps its notices."""
