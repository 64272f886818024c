"""The smtp section: valid settings are used, and invalid ones are refused before anything is accepted."""

from pathlib import Path
from typing import Any

import pytest

from carteiro import Carteiro
from carteiro.config import load, secret
from carteiro.errors import ConfigError
from carteiro.model import State
from carteiro.ports import Backend
from carteiro.providers.email_kind import email_kind
from support.quick_store import quick_backend
from support.smtp_server import HOST, PASSWORD, USER, Envelope, Say, an_smtp_server


def smtp(**changes: Any) -> dict[str, object]:
    """Flags that choose the provider; ``changes`` are keys of its section."""
    return {"provider": "smtp"} | {f"smtp.{name}": given for name, given in changes.items()}


async def opened(**changes: Any) -> None:
    """Open a store with these settings of the relay, and close it again."""
    settings = load(environ={}, overrides={"store": "memory://"} | smtp(**changes))
    async with Carteiro.open(settings=settings):
        pass


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A carteiro.toml of the current folder must not decide a test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("store", ["memory://", "sqlite:///mail.db"])
async def test_mail_goes_from_the_library_to_the_relay(
    monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    """Whole: accepted, claimed, declared, handed over, settled; the relay's id is the provider's."""
    monkeypatch.setenv("RELAY_PASSWORD", PASSWORD)
    plays = {"RCPT caio@example.com": Say("550 5.1.1 No such user\r\n")}
    extensions = ("PIPELINING", "AUTH PLAIN")
    async with an_smtp_server(plays, extensions=extensions) as server:
        relay = {
            "host": HOST,
            "port": server.port,
            "tls": "none",
            "username": USER,
            "password": "env:RELAY_PASSWORD",
            "default_from": "loja@example.com",
        }
        async with Carteiro.open(store, provider="smtp", smtp=relay) as post:
            accepted = await post.send(
                tenant="acme",
                to="ana@example.com",
                subject="Olá",
                text="t",
                cc=["bia@example.com"],
                bcc=["caio@example.com"],
            )
            worker = post.run_worker()

            def take_and_stop(mail: Envelope) -> None:
                server.mails.append(mail)
                post.stop()

            server.on_mail = take_and_stop
            await worker
            row = await post.backend.reading.message(accepted.id)
            events = await post.backend.reading.events(accepted.id)

    assert row is not None
    assert (row.state, row.provider, row.provider_id) == (State.SENT, "smtp", "Q0001")
    assert [event.type for event in events][-2:] == ["RECIPIENT_REFUSED", "SENT"]
    assert events[-2].metadata["recipient"] == "caio@example.com"
    [mail] = server.mails
    assert mail.recipients == ["ana@example.com", "bia@example.com"]
    assert f"Message-ID: <{accepted.id}.1@example.com>\r\n".encode() in mail.content
    assert server.commands[-1] == "QUIT"


async def test_provider_is_across_a_network() -> None:
    """So a worker has the slots for it."""
    settings = load(environ={}, overrides=smtp())
    async with quick_backend() as backend:
        assert isinstance(backend, Backend)
        kind, is_network = email_kind(settings, backend)

    assert is_network
    assert kind.provider == "smtp"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"password": "hunter2-aa"}, "env:NAME or file:PATH"),
        ({"password": "env:"}, "env:NAME or file:PATH"),
        ({"password": "env:NOT_SET_HERE"}, "NOT_SET_HERE: the environment variable is not set"),
        ({"password": "file:missing.txt"}, "missing.txt: cannot be read"),
        ({"ca_file": "missing.pem"}, "smtp.ca_file = 'missing.pem'"),
        ({"tls": "maybe"}, "smtp.tls = 'maybe'"),
        ({"default_from": "nobody"}, "should be an e-mail address"),
        ({"hello_name": "a b"}, "smtp.hello_name"),
        ({"connections": 0}, "smtp.connections = 0"),
        ({"tls": "none", "username": "u", "host": "mail.example.com"}, "in clear"),
    ],
)
async def test_invalid_settings_are_refused_at_once(changes: dict[str, Any], said: str) -> None:
    """Before anything is accepted, and without showing a possible secret."""
    with pytest.raises(ConfigError) as raised:
        await opened(**changes)

    assert said in str(raised.value)
    assert "hunter2" not in str(raised.value)


async def test_password_may_be_unencrypted_on_this_machine() -> None:
    await opened(tls="none", username="u", host="127.0.0.1")


def test_secret_is_read_from_its_reference(tmp_path: Path) -> None:
    """A file's last line end is not part of it; without a reference there is no secret."""
    (tmp_path / "password").write_text("a b \n", "utf-8")

    assert secret(f"file:{tmp_path}/password") == "a b "
    assert secret("env:RELAY", environ={"RELAY": "geheim"}) == "geheim"
    assert secret("") == ""


def test_secret_that_is_not_text_is_reported(tmp_path: Path) -> None:
    """Without its bytes."""
    (tmp_path / "password").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="not UTF-8"):
        secret(f"file:{tmp_path}/password")
