"""The settings of ``resend``."""

from carteiro.config import Section
from carteiro.config.values import (
    AddressOrNone,
    ApiUrl,
    Count,
    RatePerSecond,
    SecretReference,
    SomeCount,
)


class ResendSettings(Section):
    """The account at Resend that takes e-mail over."""

    api_key: SecretReference
    url: ApiUrl
    default_from: AddressOrNone
    connections: SomeCount
    rate_per_second: RatePerSecond
    concurrency: Count


class ResendFeedbackSettings(Section):
    """Who may tell what became of mails at Resend; empty: nobody."""

    resend_secret: SecretReference
