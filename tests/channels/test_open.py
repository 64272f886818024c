"""The channels that settings name; wrong settings are errors before anything is sent."""

import base64
from pathlib import Path
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.channels.open import open_channels
from carteiro.config import load
from carteiro.errors import ConfigError

SECRET = f"whsec_{base64.b64encode(bytes(32)).decode()}"
URL = "https://hooks.example.com/carteiro"


async def _names(**notices: Any) -> set[str]:
    async with Carteiro.open("memory://", notices=notices) as post:
        return set(open_channels(post.settings, post.backend, post.accepting))


async def test_channels_are_those_of_the_settings(tmp_path: Path) -> None:
    """The log alone without any; a sender alone is for the contacts of tenants."""
    file = tmp_path / "secret"
    file.write_text(SECRET)
    webhook = {"webhook": URL, "webhook_secret": f"file:{file}"}

    assert await _names() == {"log"}
    assert await _names(log=False, alertmanager="http://alertmanager:9093") == {"alertmanager"}
    assert await _names(**webhook) == {"log", "webhook"}
    assert await _names(mail_from="carteiro@ops.example") == {"log", "contact"}
    mails = {"mail_from": "carteiro@ops.example", "mail_to": "ops@ops.example"}
    assert await _names(**mails) == {"log", "contact", "mail"}


async def test_secret_that_is_none_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the setting, and never the secret."""
    monkeypatch.setenv("HOOK_SECRET", "not base64!")
    for reference in ("env:HOOK_SECRET", f"file:{tmp_path / 'nothing'}"):
        with pytest.raises(ConfigError, match=r"notices\.webhook_secret") as caught:
            await _names(webhook=URL, webhook_secret=reference)
        assert "base64!" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "notices"),
    [
        ("webhook_secret", {"webhook": URL}),
        ("webhook", {"webhook": "http://hooks.example.com/", "webhook_secret": "env:A"}),
        ("webhook", {"webhook": "https://ana:secret@hooks.example.com/"}),
        ("webhook_secret", {"webhook": URL, "webhook_secret": SECRET}),
        ("mail_from", {"mail_to": "ops@ops.example"}),
        ("mail_to", {"mail_from": "a@ops.example", "mail_to": "nobody"}),
        ("alertmanager", {"alertmanager": "alertmanager:9093"}),
        ("remind_after_ms", {"remind_after_ms": -1}),
        ("max_open", {"max_open": 0}),
    ],
    ids=str,
)
def test_wrong_setting_is_named(field: str, notices: dict[str, Any]) -> None:
    """Plain HTTP is for this machine only; a secret never stands in the settings."""
    overrides = {f"notices.{name}": each for name, each in notices.items()}
    with pytest.raises(ConfigError, match=field) as caught:
        load(environ={}, overrides=overrides)
    assert SECRET not in str(caught.value)


def test_rules_are_those_of_the_settings() -> None:
    """Every definition, with its threshold in force."""
    rules = load(
        environ={}, overrides={"alerts.dead_letters": 7, "notices.max_open": 3}
    ).alert_rules()

    assert rules.definitions["ManyDeadLetters"].threshold == 7
    assert rules.most == 3
