"""Endpoints for feedback of providers about mails; it is authenticated by its signature, not by a key."""

from collections.abc import Iterator
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.body import read_raw
from carteiro.api.documents import Document
from carteiro.api.endpoint import Call, Endpoint, Endpoints
from carteiro.api.refusal import Refusal
from carteiro.config import ProviderSpec, Settings, specs
from carteiro.config.provider_spec import FeedbackSpec, Fetch
from carteiro.model import Feedback
from carteiro.observability.metrics import Tally
from carteiro.path.track import hear
from carteiro.ports import Tracking


class FeedbackTaken(Document):
    """The result: ``unknown`` is not about a message of ours, ``ignored`` contradicts its known state.

    Neither needs a repetition.
    """

    result: str


class FeedbackEndpoints(Endpoints):
    """Endpoints of all providers with a feedback spec."""

    def __init__(
        self, settings: Settings, tracking: Tracking, tally: Tally, *, fetch: Fetch
    ) -> None:
        self._tracking = tracking
        self._tally = tally
        self._relays = tuple(name for name, spec in specs().items() if spec.features.is_relay)
        self._settings = settings
        self._fetch = fetch

    def endpoints(self) -> Iterator[tuple[Endpoint, Call]]:
        """One for each provider that gives feedback."""
        for name, spec in specs().items():
            if spec.feedback is not None:
                path, title = f"/v1/feedback/{name}", f"Receive feedback from {spec.title or name}"
                reads = spec.feedback.reads
                endpoint = Endpoint(
                    "POST", path, title, FeedbackTaken, reads=reads, refuses=(401, 403)
                )
                yield endpoint, self._call(spec, spec.feedback)

    def _call(self, spec: ProviderSpec, feedback: FeedbackSpec) -> Call:
        hears = feedback.opens(self._settings, self._fetch)

        async def call(request: Request) -> Response:
            if hears is None:
                text = f"Feedback of {spec.title or spec.name} is not accepted: {feedback.setting} is not set"
                raise Refusal(403, text)
            hears.admit(request.headers)
            body = await read_raw(request, most=feedback.most_bytes)
            told = await hears.hear(request.headers, body)
            return await self._noted(spec.name, told)

        call.__name__, call.__doc__ = spec.name, feedback.promise
        return call

    async def _noted(self, provider: str, told: Feedback | str | None) -> Response:
        """Record it; feedback that is not about our mail gets 200, too, because providers repeat refused calls."""
        if isinstance(told, str):
            return FeedbackTaken(result=told).as_response()
        told = told and replace(told, relays=self._relays)
        answer = await hear(told, provider=provider, tracking=self._tracking, tally=self._tally)
        return FeedbackTaken(result=answer).as_response()
