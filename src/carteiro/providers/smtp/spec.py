"""The provider ``smtp``: a relay."""

from importlib.resources import files

from carteiro.config import ProviderSpec, Settings
from carteiro.errors import ConfigError
from carteiro.policy.rules.answers import FOUND_OUT, Answers
from carteiro.ports import Backend, Provider
from carteiro.providers.smtp.provider import SmtpProvider
from carteiro.providers.smtp.settings import SmtpSettings

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


def _make(settings: Settings, _backend: Backend, _region: str) -> Provider:
    asked = settings.section(SmtpSettings)
    if asked.username and asked.tls == "none" and asked.host not in _THIS_MACHINE:
        origin = settings.origin("smtp.tls")
        text = f"smtp.tls = 'none' (from {origin}) would send the password in clear: use starttls or implicit"
        raise ConfigError(text)
    password = settings.secret("smtp.password")
    try:
        return SmtpProvider(asked.model_copy(update={"password": password}))
    except OSError as error:
        origin = settings.origin("smtp.ca_file")
        text = (
            f"smtp.ca_file = {asked.ca_file!r} (from {origin}): no certificates to be read: {error}"
        )
        raise ConfigError(text) from None


def _span(settings: Settings, _region: str) -> dict[str, str | int]:
    asked = settings.section(SmtpSettings)
    server: dict[str, str | int] = {"server.address": asked.host, "server.port": asked.port}
    return server | {"network.protocol.name": "smtp", "network.transport": "tcp"}


SPEC = ProviderSpec(
    name="smtp",
    features=SmtpProvider.features,
    make=_make,
    sections={"smtp": SmtpSettings},
    defaults=files(__package__).joinpath("settings.toml").read_text("utf-8"),
    answers=Answers(
        is_smtp=True,
        codes=FOUND_OUT
        | {"AUTH_ERROR", "SMTPUTF8_MISSING", "SMTP_TIMEOUT", "TLS_ERROR", "UNKNOWN"},
    ),
    host=lambda settings: settings.section(SmtpSettings).host,
    span=_span,
)
