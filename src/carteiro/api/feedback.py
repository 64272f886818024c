"""Where providers tell what became of mails: signed, so no key opens it, and nothing unsigned changes anything."""

from collections.abc import Iterable
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.body import read_raw
from carteiro.api.documents import Document
from carteiro.api.endpoint import Call, Endpoint
from carteiro.api.refusal import Refusal
from carteiro.config import FeedbackSpec, Fetch, Settings, specs
from carteiro.model import Feedback
from carteiro.observability.metrics import Tally
from carteiro.path.track import hear
from carteiro.ports import Tracking


class FeedbackTaken(Document):
    """What the feedback did: ``unknown`` is not about a message of ours, ``ignored`` contradicts what we know of it.

    Neither needs a repetition.
    """

    result: str


class FeedbackEndpoints:
    """Hears every provider whose spec says how."""

    def __init__(
        self, settings: Settings, tracking: Tracking, tally: Tally, *, fetch: Fetch
    ) -> None:
        self._tracking = tracking
        self._tally = tally
        self._relays = tuple(name for name, spec in specs().items() if spec.features.is_relay)
        self._endpoints = [
            Endpoint(
                "POST",
                f"/v1/feedback/{name}",
                self._call(name, spec.feedback, settings, fetch),
                f"Hear of mails from {spec.title}",
                FeedbackTaken,
                reads=spec.feedback.reads,
                refuses=(401, 403),
            )
            for name, spec in specs().items()
            if spec.feedback is not None
        ]

    def endpoints(self) -> Iterable[Endpoint]:
        """All of them."""
        return self._endpoints

    def _call(self, provider: str, spec: FeedbackSpec, settings: Settings, fetch: Fetch) -> Call:
        hears = spec.opens(settings, fetch)

        async def call(request: Request) -> Response:
            if hears is None:
                raise Refusal(403, spec.missing)
            hears.admit(request.headers)
            told = await hears.hear(request.headers, await read_raw(request))
            return await self._noted(provider, told)

        call.__name__, call.__doc__ = provider, spec.promise
        return call

    async def _noted(self, provider: str, told: Feedback | str | None) -> Response:
        """Note it; what is not ours is answered alike, for providers repeat what is refused."""
        if isinstance(told, str):
            return FeedbackTaken(result=told).as_response()
        told = told and replace(told, relays=self._relays)
        answer = await hear(told, provider=provider, tracking=self._tracking, tally=self._tally)
        return FeedbackTaken(result=answer).as_response()
