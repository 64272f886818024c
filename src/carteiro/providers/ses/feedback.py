"""Hear what SES tells of mails: its events, as Amazon SNS posts them."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal

from carteiro.config import FeedbackSpec, Fetch, Hears, Settings
from carteiro.errors import ConfigError
from carteiro.model.checkup import Finding, Level
from carteiro.providers.ses.settings import SesFeedbackSettings, SesSettings

_HOW_TO_HEAR = "see docs/how-to/hear-from-providers.md"


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
    try:
        from carteiro.providers.ses.sns import Sns  # noqa: PLC0415 - needs a library
    except ModuleNotFoundError as error:
        text = f"feedback.ses_topics needs {error.name}: from a clone, pip install -c constraints.txt '.[feedback]'"
        raise ConfigError(text) from error
    return Sns(asked.ses_topics.split(), fetch=fetch, url=asked.sns_url)


def look_at_feedback(settings: Settings) -> Iterator[Finding]:
    """Whether bounces and complaints are heard of."""
    if not settings.section(SesFeedbackSettings).ses_topics:
        told = "bounces and complaints of ses are not heard: feedback.ses_topics is not set"
        yield Finding("feedback", Level.WARN, told, _HOW_TO_HEAR)
    elif not settings.section(SesSettings).configuration_set:
        told = (
            "ses publishes events only with a configuration set: ses.configuration_set is not set"
        )
        yield Finding("feedback", Level.WARN, told, _HOW_TO_HEAR)
    else:
        yield Finding(
            "feedback", Level.OK, "ses is heard, through the topics of feedback.ses_topics"
        )


FEEDBACK = FeedbackSpec(
    reads=SnsMessage,
    promise="""What SNS posts for a topic of ``feedback.ses_topics``, signed in version 2; a subscription is confirmed.

Needs no key. 401 or 403, and nothing changes, if it is not SNS that says it, or of another topic.""",
    missing="Nothing is taken from SNS: feedback.ses_topics names no topic",
    opens=_opened,
)
