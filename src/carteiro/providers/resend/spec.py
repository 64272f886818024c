"""The provider ``resend``."""

from datetime import timedelta
from importlib.resources import files
from urllib.parse import urlsplit

from carteiro.config import ProviderSpec, Settings
from carteiro.errors import ConfigError
from carteiro.ports import Backend, Features, Provider
from carteiro.providers.resend.feedback import FEEDBACK
from carteiro.providers.resend.rules import ANSWERS
from carteiro.providers.resend.settings import ResendFeedbackSettings, ResendSettings

# Resend keeps a key for 24 hours from when it came; an hour for clocks that differ and calls that take long.
REPLAYS_FOR = timedelta(hours=23)


def _make(settings: Settings, _backend: Backend, _region: str) -> Provider:
    from carteiro.providers.resend import provider  # noqa: PLC0415 - needs a library

    key = settings.secret("resend.api_key")
    if not (key.isascii() and key.isprintable() and key.strip()):
        origin = settings.origin("resend.api_key")
        raise ConfigError(f"resend.api_key (from {origin}) does not lead to a key")
    asked = settings.section(ResendSettings)
    return provider.ResendProvider(asked.model_copy(update={"api_key": key.strip()}))


SPEC = ProviderSpec(
    name="resend",
    title="Resend",
    features=Features(
        is_encrypted=True, replays_for=REPLAYS_FOR, gives_evidence=True, tells_rate=True
    ),
    make=_make,
    extra="resend",
    sections={"resend": ResendSettings, "feedback": ResendFeedbackSettings},
    defaults=files(__package__).joinpath("settings.toml").read_text("utf-8"),
    answers=ANSWERS,
    feedback=FEEDBACK,
    span=lambda settings, _region: {
        "http.request.method": "POST",
        "url.template": "/emails",
        "server.address": urlsplit(settings.section(ResendSettings).url).hostname or "",
    },
)
