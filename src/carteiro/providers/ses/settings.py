"""The settings of ``ses``."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from carteiro.config import Section, Settings, provider_names, values
from carteiro.errors import ConfigError

_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]{3,}:[0-9]{12}:[A-Za-z0-9_-]{1,256}", re.ASCII)


def _topics(raw: str) -> str:
    if not all(_TOPIC.fullmatch(each) for each in raw.split()):
        raise ValueError("should be ARNs of SNS topics, separated by spaces")
    return raw


class SesSettings(Section):
    """The account and region of SES; empty texts mean none, or the default of AWS' tools.

    A provider gets them with the key itself, not the reference to it.
    """

    region: Annotated[str, values.shaped(r"[a-z0-9-]*", "a region such as eu-west-1, or empty")]
    configuration_set: Annotated[
        str, values.shaped(r"[A-Za-z0-9_-]{0,64}", "at most 64 letters, digits, - and _, or empty")
    ]
    default_from: values.AddressOrNone
    access_key_id: Annotated[
        str,
        values.shaped(r"[A-Za-z0-9_]*", "the id of a key, as AWS shows it, or empty"),
        values.Hidden(),
        Field(repr=False),
    ]  # what does not look like one may be its secret
    secret_access_key: values.SecretReference
    endpoint_url: Annotated[
        str, values.shaped(r"(https?://[^/?#@\s]+/?)?", "https://HOST without a path, or empty")
    ]
    connections: values.SomeCount
    connect_limit: values.SomeDuration = Field(alias="connect_limit_ms")
    rate_per_second: values.RatePerSecond
    concurrency: values.Count


class SesFeedbackSettings(Section):
    """Topics of feedback from SES; empty: feedback is refused."""

    ses_topics: Annotated[str, AfterValidator(_topics)]
    sns_url: values.UrlOrNone


def refuse_one_region_twice(settings: Settings) -> None:
    """Reject a region under two names: it would have two rate limits and two breakers, and fail over to itself."""
    usual = settings.section(SesSettings).region
    is_named = any("ses" in provider_names(route) for route in settings.routes.values())
    for key, route in settings.routes.items() if is_named else ():
        for type_, _, region in (name.partition(":") for name in provider_names(route)):
            if type_ == "ses" and region and usual in {"", region}:
                means = (
                    f"means {region}" if usual else "may mean any region, as ses.region is not set"
                )
                advice = f"{region} alongside ses, which {means}: write ses:REGION for each, and each region once"
                raise ConfigError(f"{key} = {route!r} (from {settings.origin(key)}): {advice}")
