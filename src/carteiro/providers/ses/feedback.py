"""Feedback of SES: its events, as Amazon SNS posts them."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from carteiro.config import Settings
from carteiro.config.provider_spec import FeedbackSpec, Fetch, Hears
from carteiro.errors import needing_extra
from carteiro.model.checkup import Finding, Level
from carteiro.providers.ses.settings import SesFeedbackSettings, SesSettings

_MOST_BYTES = 512 * 1024  # SNS publishes at most 256 KiB; each quote in it is escaped


class SnsMessage(BaseModel):
    """A message as SNS posts it; ``Message`` is what was published. What we do not look at may be there."""

    model_config = ConfigDict(alias_generator=to_pascal, extra="ignore", frozen=True, strict=True)

    type: str
    message_id: str
    topic_arn: str
    message: str
    timestamp: str
    signature_version: str
    signature: str
    signing_cert_url: str = Field(alias="SigningCertURL")
    subject: str | None = None
    token: str | None = None
    subscribe_url: str | None = Field(default=None, alias="SubscribeURL")


def _opened(settings: Settings, fetch: Fetch) -> Hears | None:
    asked = settings.section(SesFeedbackSettings)
    if not asked.ses_topics:
        return None
    with needing_extra("feedback.ses_topics needs", "feedback"):
        from carteiro.providers.ses.sns import Sns  # noqa: PLC0415 - needs a library
    return Sns(asked.ses_topics.split(), fetch=fetch, url=asked.sns_url)


def look_at_events(settings: Settings) -> Iterator[Finding]:
    """Findings about the feedback settings: events need a configuration set."""
    is_heard = settings.section(SesFeedbackSettings).ses_topics
    if is_heard and not settings.section(SesSettings).configuration_set:
        told = (
            "ses publishes events only with a configuration set: ses.configuration_set is not set"
        )
        yield Finding("feedback", Level.WARN, told, "see docs/how-to/hear-from-providers.md")


FEEDBACK = FeedbackSpec(
    reads=SnsMessage,
    promise="""Feedback from SNS for a topic of ``feedback.ses_topics``, in signature version 2; confirms subscriptions.

Needs no key. 401 or 403, and nothing changes, if the signature is not valid or the topic is another one.""",
    setting="feedback.ses_topics",
    opens=_opened,
    most_bytes=_MOST_BYTES,
)
