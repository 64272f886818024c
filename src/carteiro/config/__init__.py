"""Typed settings: default file < carteiro.toml < environment < flags; each value knows where it came from.

At the edges durations are whole milliseconds and their names end in ``_ms``; here they are
`timedelta` and the suffix is gone. ``config.default.toml``, and
``settings.toml`` of each provider, are the only source of defaults.
"""

from carteiro.config.provider_spec import ProviderSpec
from carteiro.config.providers import spec_of, specs
from carteiro.config.reading import (
    ENV_FILE,
    default_sections,
    default_text,
    default_values,
    env_name,
    load,
)
from carteiro.config.sections import (
    FREE_TABLES,
    ApiSettings,
    Given,
    MetricsSettings,
    Settings,
    setting_keys,
    settings_type,
)
from carteiro.config.tickets import TicketSettings
from carteiro.config.values import Section, is_reference, provider_names, secret, shown_setting
