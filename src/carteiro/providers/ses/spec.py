"""The provider ``ses``: Amazon SES."""

from importlib.resources import files

from carteiro.config import ProviderSpec, Settings
from carteiro.errors import ConfigError
from carteiro.ports import Backend, Features, Provider
from carteiro.providers.ses.feedback import FEEDBACK, look_at_events
from carteiro.providers.ses.rules import ANSWERS
from carteiro.providers.ses.settings import (
    SesFeedbackSettings,
    SesSettings,
    refuse_one_region_twice,
)


def _make(settings: Settings, _backend: Backend, region: str) -> Provider:
    """The provider of a region, or of the one that is set."""
    asked = settings.section(SesSettings)
    if bool(asked.access_key_id) != bool(asked.secret_access_key):
        key = "ses.access_key_id" if asked.access_key_id else "ses.secret_access_key"
        raise ConfigError(
            f"{key} (from {settings.origin(key)}): access_key_id and secret_access_key go together"
        )
    from carteiro.providers.ses import provider  # noqa: PLC0415 - needs a library

    secret = settings.secret("ses.secret_access_key")
    told = {"secret_access_key": secret, "region": region or asked.region}
    return provider.SesProvider(asked.model_copy(update=told), settings.delivery.call_limit)


SPEC = ProviderSpec(
    name="ses",
    title="SES",
    features=Features(
        is_encrypted=True, names_stage=True, gives_evidence=True, tells_rate=True, has_regions=True
    ),
    make=_make,
    extra="ses",
    sections={"ses": SesSettings, "feedback": SesFeedbackSettings},
    defaults=files(__package__).joinpath("settings.toml").read_text("utf-8"),
    answers=ANSWERS,
    feedback=FEEDBACK,
    check=look_at_events,
    region="[a-z]{2}(-[a-z]+)+-[0-9]+",
    validate=refuse_one_region_twice,
    span=lambda settings, region: {
        "rpc.system": "aws-api",
        "rpc.service": "SESv2",
        "rpc.method": "SendEmail",
        "cloud.region": region or settings.section(SesSettings).region,
    },
)
