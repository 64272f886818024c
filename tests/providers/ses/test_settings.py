"""The ses section: valid settings are used, and invalid ones are refused before anything is accepted."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from carteiro import Carteiro
from carteiro.config import load
from carteiro.errors import ConfigError
from carteiro.model import EventType, State
from carteiro.providers.email_kind import email_kind
from support.quick_store import quick_backend
from support.ses_twin import KEY_ID, REGION, SECRET, Mail, a_ses_twin


def ses(**changes: Any) -> dict[str, object]:
    """Flags that choose the provider; ``changes`` are keys of its section."""
    return {"provider": "ses"} | {f"ses.{name}": given for name, given in changes.items()}


async def opened(**changes: Any) -> None:
    """Open a store with these settings of the account, and close it again."""
    settings = load(environ={}, overrides={"store": "memory://"} | ses(**changes))
    async with Carteiro.open(settings=settings):
        pass


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A carteiro.toml of the current folder must not decide a test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("is_named", [True, False], ids=["keys-in-settings", "keys-of-aws"])
async def test_mail_goes_from_the_library_to_ses(
    monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    """Whole: accepted, claimed, declared, handed over, settled; SES' id is the provider's."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    if is_named:
        keys = {"access_key_id": KEY_ID, "secret_access_key": "env:AWS_SECRET_ACCESS_KEY"}
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
        keys = {}
    async with a_ses_twin() as twin:
        account = {"region": REGION, "endpoint_url": twin.url, "default_from": "loja@example.com"}
        async with Carteiro.open("memory://", provider="ses", ses=account | keys) as post:
            accepted = await post.send(tenant="acme", to="ana@example.com", subject="s", text="t")
            worker = post.run_worker()

            def take_and_stop(mail: Mail) -> None:
                twin.mails.append(mail)
                post.stop()

            twin.on_mail = take_and_stop
            await worker
            row = await post.backend.reading.message(accepted.id)
            events = await post.backend.reading.events(accepted.id)

    [mail] = twin.mails
    assert row is not None
    assert (row.state, row.provider, row.provider_id) == (State.SENT, "ses", mail.id)
    assert mail.tags["carteiro-message"] == accepted.id
    [told] = [event for event in events if event.type is EventType.SENT]
    assert told.metadata["sesMessageId"] == mail.id


async def test_provider_is_across_a_network() -> None:
    """So a worker has the slots for it."""
    settings = load(environ={}, overrides=ses())
    async with quick_backend() as backend:
        kind, is_network = email_kind(settings, backend)

    assert is_network
    assert kind.provider == "ses"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"secret_access_key": "hunter2-aa"}, "env:NAME or file:PATH"),
        (
            {"access_key_id": "AKIA", "secret_access_key": "env:NOT_SET_HERE"},
            "ses.secret_access_key (from flag) = env:NOT_SET_HERE",
        ),
        ({"access_key_id": "AKIA"}, "ses.access_key_id (from flag)"),
        ({"secret_access_key": "env:HOME"}, "ses.secret_access_key (from flag)"),
        ({"region": "eu west"}, "ses.region = 'eu west'"),
        ({"configuration_set": "a b"}, "ses.configuration_set"),
        ({"endpoint_url": "ses.example.com"}, "ses.endpoint_url"),
        ({"default_from": "nobody"}, "should be an e-mail address"),
        ({"connections": 0}, "ses.connections = 0"),
    ],
)
async def test_invalid_settings_are_refused_at_once(changes: dict[str, Any], said: str) -> None:
    """Before anything is accepted, and without showing a possible secret."""
    with pytest.raises(ConfigError) as raised:
        await opened(**changes)

    assert said in str(raised.value)
    assert "hunter2" not in str(raised.value)


async def test_missing_library_is_named_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is an optional extra."""
    loaded = ("aiobotocore.", "carteiro.providers.ses")
    for name in [name for name in sys.modules if name.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aiobotocore", None)

    with pytest.raises(ConfigError, match=r"needs aiobotocore.*\.\[ses\]"):
        await opened()


def test_library_is_loaded_only_on_use() -> None:
    """It takes longer to load than all the rest."""
    asked = "import sys, carteiro, carteiro.stores.open; print('botocore' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True)

    assert ran.stdout.strip() == "False"
