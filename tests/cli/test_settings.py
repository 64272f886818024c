"""Settings as whoever operates it meets them: from the environment, one variable for every setting."""

import pytest

from carteiro import config
from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine

DEFAULTS = {each.key: each.raw for each in config.load(environ={}).given()}


@pytest.mark.parametrize("key", config.setting_keys())
def test_every_setting_has_its_variable(key: str) -> None:
    """What stands in a file can stand in the environment instead."""
    name = config.env_name(key)
    raw = DEFAULTS[key]
    text = str(raw).lower() if isinstance(raw, bool) else str(raw)

    settings = config.load(environ={name: text})

    assert settings.origin(key) == f"environment variable {name}"


def test_no_two_settings_share_a_variable() -> None:
    """One name, one meaning."""
    assert len({config.env_name(key) for key in config.setting_keys()}) == len(
        config.setting_keys()
    )


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("CARTEIRO_API_PORT", "x", "api.port = 'x' (from environment variable CARTEIRO_API_PORT)"),
        ("CARTEIRO_RETRY_PRESET", "never", "should be one of gateway, classic"),
        (
            "CARTEIRO_PROVIDER",
            "pigeon",
            "provider = 'pigeon' (from environment variable CARTEIRO_PROVIDER)",
        ),
        ("CARTEIRO_PROVIDER", "pigeon", "should be sandbox, smtp, ses, resend, noop or ses:REGION"),
        (
            "CARTEIRO_STORE",
            "redis://here",
            "should be sqlite:///FILE, postgresql://HOST/DATABASE or memory://",
        ),
        ("CARTEIRO_DELIVERY_LEASE_MS", "0", "whole milliseconds, 1 or more"),
        ("CARTEIRO_DELIVERY_LEASE", "5", "did you mean CARTEIRO_DELIVERY_LEASE_MS?"),
        ("CARTEIRO_NOTHING_LIKE_IT", "5", "no such setting"),
    ],
)
def test_a_wrong_setting_says_which_where_from_and_what_is_allowed(
    line: CommandLine, variable: str, text: str, says: str
) -> None:
    """Every command tells it alike, with exit code 2, before it does anything."""
    for command in (("ls",), ("config", "show"), ("doctor",), ("migrate",)):
        ran = line(*command, **{variable: text})

        assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
        assert says in ran.err
    assert list(line.folder.iterdir()) == []
