"""Feedback of Resend: its webhooks, signed as in the Standard Webhooks scheme.

A valid signature proves that the sender has the secret, and that the event was sent just now.
"""

import hmac
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from carteiro.config import Settings
from carteiro.config.provider_spec import FeedbackSpec, Fetch
from carteiro.errors import ConfigError, FeedbackRefused
from carteiro.model import Feedback
from carteiro.policy.webhooks import VERSION, secret_of, signature
from carteiro.providers.feedback import read_event
from carteiro.providers.resend.events import from_resend
from carteiro.providers.resend.settings import ResendFeedbackSettings

TOLERANCE = timedelta(minutes=5)


class ResendEvent(BaseModel):
    """An event as Resend posts it."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    type: str
    created_at: str
    data: dict[str, Any]


class Webhooks:
    """Judges the signatures of one sender; during a change of secrets there are two."""

    def __init__(self, secrets: str) -> None:
        """``secrets``: one or more, separated by spaces; `ConfigError` if they are not valid."""
        self._secrets = [_secret(each) for each in secrets.split() or [""]]

    def admit(self, headers: Mapping[str, str]) -> None:
        """Refuse what is not signed, or not just now, before the body is read."""
        if not _is_fresh(Signed.of(headers).sent_at, time.time()):
            raise _refused(f"The signature is not of the last {TOLERANCE.seconds} s")

    async def hear(self, headers: Mapping[str, str], body: bytes) -> Feedback | None:
        """Signed feedback of Resend."""
        event_id = self.verified_id(Signed.of(headers), body)
        return from_resend(read_event(body, ResendEvent).model_dump(), event_id=event_id)

    def verified_id(self, told: "Signed", body: bytes) -> str:
        """The id of what was sent; a `FeedbackRefused` if it is not signed by whom it should be.

        It is the same whenever the same is sent again.
        """
        if not any(
            _is_right(told.signatures.split(), signature(secret, told.id, told.sent_at, body))
            for secret in self._secrets
        ):
            raise _refused("The signature is wrong")
        return told.id


class Signed(NamedTuple):
    """The signature in the headers."""

    id: str
    sent_at: str
    signatures: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Self:
        """A `FeedbackRefused` if there is no signature."""
        names = ("id", "timestamp", "signature")
        told = [headers.get(f"svix-{name}") or headers.get(f"webhook-{name}") for name in names]
        identity, sent_at, signatures = told
        if not identity or not sent_at or not signatures:
            raise _refused("The request is not signed")
        return cls(identity, sent_at, signatures)


def _secret(text: str) -> bytes:
    key = secret_of(text)
    if key is None:
        raise ConfigError(
            "feedback.resend_secret does not lead to a secret that begins with whsec_"
        )
    return key


def _is_fresh(sent_at: str, now: float) -> bool:
    is_number = sent_at.isascii() and sent_at.isdecimal() and len(sent_at) <= len("9999999999")
    return is_number and abs(now - int(sent_at)) <= TOLERANCE.total_seconds()


def _is_right(signatures: Sequence[str], expected: str) -> bool:
    """True if one of them is the expected one; all are compared, for constant time."""
    fits = False
    for each in signatures:
        version, _, given = each.partition(",")
        is_equal = hmac.compare_digest(given.encode("latin-1"), expected.encode())
        fits |= version == VERSION and is_equal
    return fits


def _refused(text: str) -> FeedbackRefused:
    return FeedbackRefused(401, text)


def _opened(settings: Settings, _fetch: Fetch) -> Webhooks | None:
    if not settings.section(ResendFeedbackSettings).resend_secret:
        return None
    return Webhooks(settings.secret("feedback.resend_secret"))


FEEDBACK = FeedbackSpec(
    reads=ResendEvent,
    promise="""Feedback of Resend's webhook, signed with ``feedback.resend_secret`` within the last five minutes.

Needs no key. 401, and nothing changes, if the signature is not valid.""",
    setting="feedback.resend_secret",
    opens=_opened,
)
