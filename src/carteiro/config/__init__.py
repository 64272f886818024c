"""Typed settings: default file < carteiro.toml < environment < flags; each value knows where it came from.

At the edges durations are whole milliseconds and their names end in ``_ms``; here they are
`timedelta` and the suffix is gone. ``config.default.toml`` is the only source of defaults.
"""

from carteiro.config.reading import ENV_FILE, default_text, default_values, env_name, load, secret
from carteiro.config.sections import (
    FREE_TABLES,
    KEYS,
    ApiSettings,
    FeedbackSettings,
    Given,
    MetricsSettings,
    Settings,
)
from carteiro.config.tickets import TicketSettings
from carteiro.config.values import PROVIDERS, is_reference, provider_names, shown_setting

__all__ = [
    "ENV_FILE",
    "FREE_TABLES",
    "KEYS",
    "PROVIDERS",
    "ApiSettings",
    "FeedbackSettings",
    "Given",
    "MetricsSettings",
    "Settings",
    "TicketSettings",
    "default_text",
    "default_values",
    "env_name",
    "is_reference",
    "load",
    "provider_names",
    "secret",
    "shown_setting",
]
