"""Where providers tell what became of mails: signed, so no key opens it, and nothing unsigned changes anything."""

import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.body import read_raw
from carteiro.api.documents import Document
from carteiro.api.endpoint import Endpoint
from carteiro.api.fetching import Fetch
from carteiro.api.refusal import Refusal
from carteiro.api.sns_message import SnsMessage
from carteiro.api.webhooks import Signed, webhooks_of
from carteiro.config import FeedbackSettings
from carteiro.email.message import plainly, refuse_many_parts
from carteiro.errors import ConfigError
from carteiro.model import Feedback, NoteAnswer
from carteiro.observability import log
from carteiro.observability.metrics import Tally
from carteiro.path.track import hear
from carteiro.policy.feedback import RESEND, SES, from_resend, from_ses
from carteiro.ports import Tracking

_MOST_PARTS = 50_000
_NO_TOPICS = "Nothing is taken from SNS: feedback.ses_topics names no topic"
_NO_SECRET = "Nothing is taken from Resend: feedback.resend_secret is not set"  # noqa: S105 - it is none


class ResendEvent(BaseModel):
    """An event as Resend posts it."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    type: str
    created_at: str
    data: dict[str, Any]


class FeedbackTaken(Document):
    """What the feedback did: ``unknown`` is not about a message of ours, ``ignored`` contradicts what we know of it.

    Neither needs a repetition.
    """

    result: str


class FeedbackEndpoints:
    """Hears SES, through SNS, and Resend."""

    def __init__(
        self, settings: FeedbackSettings, tracking: Tracking, tally: Tally, *, fetch: Fetch
    ) -> None:
        topics = settings.ses_topics.split()
        self._sns = _sns(topics, settings.sns_url, fetch) if topics else None
        self._webhooks = webhooks_of(settings)
        self._tracking = tracking
        self._tally = tally

    def endpoints(self) -> Iterable[Endpoint]:
        """All of them."""
        yield Endpoint(
            "POST",
            "/v1/feedback/ses",
            self.ses,
            "Hear of mails from SES",
            FeedbackTaken,
            reads=SnsMessage,
            refuses=(401, 403),
        )
        yield Endpoint(
            "POST",
            "/v1/feedback/resend",
            self.resend,
            "Hear of mails from Resend",
            FeedbackTaken,
            reads=ResendEvent,
            refuses=(401, 403),
        )

    async def ses(self, request: Request) -> Response:
        """What SNS posts for a topic of ``feedback.ses_topics``, signed in version 2; a subscription is confirmed.

        Needs no key. 401 or 403, and nothing changes, if it is not SNS that says it, or of another topic.
        """
        if self._sns is None:
            raise Refusal(403, _NO_TOPICS)
        self._sns.refuse_others(request.headers.get("x-amz-sns-topic-arn", ""))
        message = _read(await read_raw(request), SnsMessage)
        await self._sns.verify(message)
        if message.type == "SubscriptionConfirmation":
            await self._sns.confirm(message)
            log.subscription_confirmed(message.topic_arn)
            return FeedbackTaken(result="confirmed").as_response()
        if message.type != "Notification":
            return FeedbackTaken(result=NoteAnswer.UNKNOWN).as_response()
        return await self._noted(SES, from_ses(_parsed(message.message)))

    async def resend(self, request: Request) -> Response:
        """What Resend's webhook posts, signed with ``feedback.resend_secret`` within the last five minutes.

        Needs no key. 401, and nothing changes, if it is not Resend that says it.
        """
        if self._webhooks is None:
            raise Refusal(403, _NO_SECRET)
        signed = Signed.of(request.headers, now=time.time())
        body = await read_raw(request)
        event_id = self._webhooks.verified_id(signed, body)
        event = _read(body, ResendEvent).model_dump()
        return await self._noted(RESEND, from_resend(event, event_id=event_id))

    async def _noted(self, provider: str, told: Feedback | None) -> Response:
        """Note it; what is not ours is answered alike, for providers repeat what is refused."""
        answer = await hear(told, provider=provider, tracking=self._tracking, tally=self._tally)
        return FeedbackTaken(result=answer).as_response()


def _sns(topics: list[str], url: str, fetch: Fetch) -> Any:  # noqa: ANN401 - of a module that needs a library
    try:
        module = import_module("carteiro.api.sns")
    except ModuleNotFoundError as error:
        text = f"feedback.ses_topics needs {error.name}: from a clone, pip install -c constraints.txt '.[feedback]'"
        raise ConfigError(text) from error
    return module.Sns(topics, fetch=fetch, url=url)


def _read(body: bytes, shape: type[Any]) -> Any:  # noqa: ANN401 - one of the shape
    refuse_many_parts(body, _MOST_PARTS)
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise plainly(error) from None


def _parsed(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
