"""Hear what Resend tells of mails."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from carteiro.config import FeedbackSpec, Fetch, Hears, Settings
from carteiro.errors import ConfigError
from carteiro.model.checkup import Finding, Level
from carteiro.providers.resend.settings import ResendFeedbackSettings

_HOW_TO_HEAR = "see docs/how-to/hear-from-providers.md"


class ResendEvent(BaseModel):
    """An event as Resend posts it."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    type: str
    created_at: str
    data: dict[str, Any]


def _opened(settings: Settings, _fetch: Fetch | None = None) -> Hears | None:
    from carteiro.providers.resend.webhooks import Webhooks  # noqa: PLC0415 - for the API alone

    if not settings.section(ResendFeedbackSettings).resend_secret:
        return None
    return Webhooks(settings.secret("feedback.resend_secret"))


def look_at_feedback(settings: Settings) -> Iterator[Finding]:
    """Whether bounces and complaints are heard of."""
    try:
        webhooks = _opened(settings)  # as the API does when it starts
    except ConfigError as error:
        advice = "the API does not start without: set it there"
        yield Finding("feedback", Level.FAIL, str(error), advice)
        return
    if webhooks is None:
        told = "bounces and complaints of resend are not heard: feedback.resend_secret is not set"
        yield Finding("feedback", Level.WARN, told, _HOW_TO_HEAR)
    else:
        yield Finding("feedback", Level.OK, "resend is heard, signed with feedback.resend_secret")


FEEDBACK = FeedbackSpec(
    reads=ResendEvent,
    promise="""What Resend's webhook posts, signed with ``feedback.resend_secret`` within the last five minutes.

Needs no key. 401, and nothing changes, if it is not Resend that says it.""",
    missing="Nothing is taken from Resend: feedback.resend_secret is not set",
    opens=_opened,
)
