"""The settings of ``resend``."""

from carteiro.config import Section, values


class ResendSettings(Section):
    """The account at Resend. A provider gets them with the key itself, not the reference to it."""

    api_key: values.SecretReference
    url: values.ApiUrl
    default_from: values.AddressOrNone
    connections: values.SomeCount
    rate_per_second: values.RatePerSecond
    concurrency: values.Count


class ResendFeedbackSettings(Section):
    """Secret of feedback from Resend; empty: feedback is refused."""

    resend_secret: values.SecretReference
