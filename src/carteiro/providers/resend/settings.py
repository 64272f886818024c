"""The settings of ``resend``."""

from carteiro.config import Section, values


class ResendSettings(Section):
    """The account at Resend that takes e-mail over."""

    api_key: values.SecretReference
    url: values.ApiUrl
    default_from: values.AddressOrNone
    connections: values.SomeCount
    rate_per_second: values.RatePerSecond
    concurrency: values.Count


class ResendFeedbackSettings(Section):
    """Who may tell what became of mails at Resend; empty: nobody."""

    resend_secret: values.SecretReference
