"""The channels that the settings name."""

from collections.abc import Mapping
from importlib import import_module

from carteiro.channels.log import LogChannel
from carteiro.channels.mail import MailChannel
from carteiro.config import Settings
from carteiro.errors import ConfigError, needing_extra
from carteiro.model import TenantId
from carteiro.path.accept import Accepting
from carteiro.policy.webhooks import secret_of
from carteiro.ports import Backend
from carteiro.ports.alerts import Channel

_SHORTEST_SECRET = 24  # bytes, as the scheme asks


def open_channels(
    settings: Settings, ports: Backend, accepting: Accepting
) -> Mapping[str, Channel]:
    """The channels by name; `ConfigError` if a secret or a library is missing."""
    wanted = settings.notices
    found: dict[str, Channel] = {"log": LogChannel()} if wanted.log else {}
    if wanted.webhook:
        secret = secret_of(settings.secret("notices.webhook_secret"))
        if secret is None or len(secret) < _SHORTEST_SECRET:
            raise ConfigError(
                "notices.webhook_secret does not lead to a secret: whsec_ and 24 to 64 bytes as base64"
            )
        with needing_extra("Webhooks need", "notices"):
            module = import_module("carteiro.channels.webhook")
        found["webhook"] = module.WebhookChannel(wanted.webhook, secret)
    if wanted.alertmanager:
        with needing_extra("An Alertmanager needs", "notices"):
            module = import_module("carteiro.channels.alertmanager")
        found["alertmanager"] = module.AlertmanagerChannel(wanted.alertmanager)
    if wanted.mail_from:
        recipients = {"mail": wanted.mail_to, "contact": None}
        for name, to in recipients.items():
            if to != "":
                found[name] = MailChannel(
                    name,
                    accepting,
                    ports,
                    tenant=TenantId(wanted.mail_tenant),
                    sender=wanted.mail_from,
                    to=to,
                )
    return found
