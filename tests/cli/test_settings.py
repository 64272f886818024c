"""Settings in the environment: one variable for every setting."""

import tomllib
from functools import reduce

import pytest

from carteiro import config
from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine

DEFAULTS = {each.key: each.raw for each in config.load(environ={}).given()}


@pytest.mark.parametrize("key", config.setting_keys())
def test_every_setting_has_its_variable(key: str) -> None:
    name = config.env_name(key)
    raw = DEFAULTS[key]
    text = str(raw).lower() if isinstance(raw, bool) else str(raw)

    settings = config.load(environ={name: text})

    assert settings.origin(key) == f"environment variable {name}"


def test_variables_are_unique() -> None:
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
def test_wrong_setting_is_reported_with_origin_and_allowed_values(
    line: CommandLine, variable: str, text: str, says: str
) -> None:
    """By every command alike, with exit code 2, before it does anything."""
    for command in (("ls",), ("config", "show"), ("doctor",), ("migrate",)):
        ran = line(*command, **{variable: text})

        assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
        assert says in ran.err
    assert list(line.folder.iterdir()) == []


PRESETS_AND_RULES = """
store = "memory://"

[retry.presets.fast]
attempts = 3
base_ms = 100

[retry.presets.slow]
attempts = 3
table_ms = [60_000, 300_000]

[[verdicts]]
name = "q"
text = 'a "b"'
category = "QUOTA_ERROR"
retryable = true
scope = "tenant"
"""


def test_settings_are_shown_in_the_format_of_a_settings_file(line: CommandLine) -> None:
    """Presets and rules have a line each, in TOML; texts in them are quoted."""
    file = line.folder / "carteiro.toml"
    file.write_text(PRESETS_AND_RULES)

    shown = line("config", "show", "--config", str(file)).out.splitlines()

    for row in (
        "retry.presets.fast = { attempts = 3, base_ms = 100 }",
        "retry.presets.slow = { attempts = 3, table_ms = [60000, 300000] }",
        r'verdicts[1] = { name = "q", text = "a \"b\"", category = "QUOTA_ERROR", retryable = true, scope = "tenant" }',
    ):
        assert f"{row}  # {file}" in shown
    assert "retry.patient = false  # default" in shown
    assert all(row == row.rstrip() and "   " not in row for row in shown)


def test_setting_from_the_environment_is_shown_with_its_type(line: CommandLine) -> None:
    """Variables are text; the setting is not."""
    shown = line(
        "config",
        "show",
        CARTEIRO_API_PORT="9000",
        CARTEIRO_RETRY_PRESETS='{"fast":{"attempts":3,"base_ms":100}}',
        CARTEIRO_STORE="memory://",
    ).out.splitlines()

    assert "api.port = 9000  # environment variable CARTEIRO_API_PORT" in shown
    assert 'store = "memory://"  # environment variable CARTEIRO_STORE' in shown
    preset = "retry.presets.fast = { attempts = 3, base_ms = 100 }"
    assert f"{preset}  # environment variable CARTEIRO_RETRY_PRESETS" in shown


def test_every_default_is_shown_as_toml(line: CommandLine) -> None:
    """It can be copied into a settings file."""
    shown = tomllib.loads(line("config", "show").out)

    for key in set(config.setting_keys()) - {"store"}:
        assert reduce(lambda table, part: table[part], key.split("."), shown) == DEFAULTS[key]
