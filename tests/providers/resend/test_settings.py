"""The resend section: valid settings are used, invalid ones are refused, and the key is never shown."""

import sys
from pathlib import Path
from typing import Any

import pytest

from carteiro import Carteiro
from carteiro.config import load
from carteiro.errors import ConfigError
from carteiro.model import State
from carteiro.providers.email_kind import email_kind
from carteiro.providers.resend.spec import REPLAYS_FOR
from support.quick_store import quick_backend
from support.resend_sending import a_provider, an_account, key_of
from support.resend_twin import Delivery, ResendTwin, serving
from support.sending import SENDER

KEY = "RESEND_API_KEY"


def resend(**changes: Any) -> dict[str, object]:
    """Flags that choose the provider; ``changes`` are keys of its section."""
    return {"provider": "resend"} | {f"resend.{name}": given for name, given in changes.items()}


async def opened(**changes: Any) -> None:
    """Open a store with these settings of the account, and close it again."""
    settings = load(environ={}, overrides={"store": "memory://"} | resend(**changes))
    async with Carteiro.open(settings=settings):
        pass


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a carteiro.toml of the current folder nor a key of the user must decide a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY, raising=False)


@pytest.mark.parametrize("store", ["memory://", "sqlite:///mail.db"])
async def test_mail_goes_from_the_library_to_resend(
    monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """Whole: accepted, claimed, declared, handed over, settled; Resend's id is the provider's."""
    async with serving(ResendTwin()) as twin:
        monkeypatch.setenv(KEY, twin.api_key)
        account = {"url": twin.url, "default_from": SENDER}
        async with Carteiro.open(store, provider="resend", resend=account) as post:
            accepted = await post.send(tenant="acme", to="ana@example.com", subject="Olá", text="t")

            def stop(_mail: Delivery) -> None:
                post.stop()

            twin.on_mail = stop
            await post.run_worker()
            row = await post.backend.reading.message(accepted.id)
            events = await post.backend.reading.events(accepted.id)

    [mail] = twin.deliveries
    assert row is not None
    assert (row.state, row.provider, row.provider_id) == (State.SENT, "resend", mail.id)
    assert events[-1].metadata["sesMessageId"] == mail.id
    assert mail.key == key_of(accepted.id)


async def test_provider_is_across_a_network_and_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a worker has the slots for it, and resolves doubts by replay."""
    monkeypatch.setenv(KEY, "re_made_up")
    settings = load(environ={}, overrides=resend())
    async with quick_backend() as backend:
        kind, is_network = email_kind(settings, backend)

    assert is_network
    assert (kind.provider, kind.replays_for) == ("resend", REPLAYS_FOR)
    assert kind.close is not None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "env:RESEND_API_KEY: the environment variable is not set"),
        ({"api_key": "re_4f1c"}, "env:NAME or file:PATH"),
        ({"api_key": ""}, "resend.api_key (from flag) does not lead to a key"),
        ({"api_key": "file:empty.txt"}, "resend.api_key (from flag) does not lead to a key"),
        ({"api_key": "file:two-lines.txt"}, "resend.api_key (from flag) does not lead to a key"),
        ({"api_key": "file:missing.txt"}, "missing.txt: cannot be read"),
        ({"url": "api.resend.com"}, "should be https://HOST"),
        ({"url": "http://api.resend.com"}, "should be https://HOST"),
        ({"url": "https://"}, "should be https://HOST"),
        ({"default_from": "nobody"}, "should be an e-mail address"),
        ({"connections": 0}, "resend.connections = 0"),
    ],
)
async def test_invalid_settings_are_refused_at_once(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """Before anything is accepted, and without showing a possible secret."""
    (tmp_path / "empty.txt").write_text("\n", "utf-8")
    (tmp_path / "two-lines.txt").write_text("re_4f1c\nre_4f1c", "utf-8")
    with pytest.raises(ConfigError) as raised:
        await opened(**changes)

    assert said in str(raised.value)
    assert "4f1c" not in str(raised.value)


async def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command to install it."""
    monkeypatch.setenv(KEY, "re_made_up")
    for name in [each for each in sys.modules if each.startswith("carteiro.providers.resend")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)

    with pytest.raises(ConfigError, match=r"Resend needs httpx: .*'\.\[resend\]'"):
        await opened()


@pytest.mark.parametrize("may_only_send", [True, False])
async def test_valid_key_can_be_used(may_only_send: bool) -> None:
    """A key for sending only is valid, too; the check sends nothing."""
    async with an_account(may_only_send=may_only_send) as (twin, provider):
        assert await provider.check() == []

    assert twin.deliveries == []


async def test_wrong_key_and_unreachable_server_are_reported() -> None:
    """Before the first mail: with the first it would fail, with the second it waits."""
    async with an_account() as (twin, _), a_provider(twin, api_key="re_4f1c") as provider:
        [wrong] = await provider.check()
    async with a_provider(twin) as provider:
        [away] = await provider.check()

    assert (wrong.told, wrong.is_deadly) == ("API key is invalid.", True)
    assert "resend.api_key" in wrong.advice
    assert "ConnectError" in away.told
    assert not away.is_deadly


@pytest.mark.parametrize(
    ("sender", "status", "deadly"),
    [
        ("loja@example.com", None, None),
        ("onboarding@resend.dev", None, None),
        ("", None, None),
        ("loja@example.net", None, True),
        ("loja@example.net", "pending", True),
        ("loja@example.net", "temporary_failure", False),
    ],
)
async def test_sender_with_an_unverified_domain_is_reported(
    sender: str, status: str | None, *, deadly: bool | None
) -> None:
    """Resend would refuse each of its mails."""
    unverified = {"example.net": status} if status else {}
    async with (
        an_account(unverified=unverified) as (twin, _),
        a_provider(twin, default_from=sender) as provider,
    ):
        faults = await provider.check()

    assert [fault.is_deadly for fault in faults] == ([] if deadly is None else [deadly])
    assert all("example.net" in fault.told for fault in faults)
