"""Security settings are enforced: encryption, the right certificate, the right password."""

from pathlib import Path
from typing import Any

import pytest

from carteiro.model import Category, Deferred, Outcome, Rejected, Scope, Taken
from carteiro.providers.smtp.provider import SmtpProvider
from support.sending import SOON, failure_of, sent
from support.smtp_certificates import Authority, an_authority
from support.smtp_sending import a_large_mail, a_provider, a_relay, options_for
from support.smtp_server import EXTENSIONS, PASSWORD, USER, Drop, Say, Stall, an_smtp_server

KNOWN: dict[str, Any] = {"username": USER, "password": PASSWORD}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that signs the certificates of the relay."""
    return an_authority(tmp_path_factory.mktemp("authority"))


def starttls(authority: Authority, **changes: Any) -> dict[str, Any]:
    """Options that ask for STARTTLS and trust the authority."""
    return {"tls": "starttls", "ca_file": authority.ca_file} | changes


# --- encryption -------------------------------------------------------------------------------


async def test_starttls_encrypts_all_that_follows(authority: Authority) -> None:
    """EHLO is repeated under encryption, and mail goes through."""
    async with a_relay(starttls=authority.context(), **starttls(authority)) as (server, provider):
        outcomes = [await sent(provider) for _ in range(2)]

    assert outcomes == [Taken("Q0001"), Taken("Q0002")]
    assert [command.split()[0] for command in server.commands[:4]] == [
        "EHLO",
        "STARTTLS",
        "EHLO",
        "MAIL",
    ]
    assert server.connections == 1


async def test_implicit_tls_encrypts_from_the_start(authority: Authority) -> None:
    """For small and large mails."""
    options = starttls(authority, tls="implicit")
    async with a_relay(implicit=authority.context(), extensions=("PIPELINING",), **options) as (
        server,
        provider,
    ):
        outcomes = [await sent(provider, a_large_mail()), await sent(provider)]

    assert outcomes == [Taken("Q0001"), Taken("Q0002")]
    assert server.said("STARTTLS") == 0


async def test_large_mail_that_breaks_is_not_handed_over(authority: Authority) -> None:
    """Encrypted or not."""
    plays = {"body": Drop()}
    context = authority.context()
    options = starttls(authority, tls="implicit")
    async with a_relay(plays, implicit=context, extensions=("PIPELINING",), **options) as (
        server,
        provider,
    ):
        outcome = await sent(provider, a_large_mail())

    assert isinstance(outcome, Deferred)
    assert server.mails == []


async def _refused_for_tls(server: Any, **options: Any) -> Outcome:
    async with a_provider(server, **KNOWN, **options) as provider:
        outcome = await sent(provider)
    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "TLS_ERROR"
    assert failure_of(outcome).category is Category.CONFIGURATION_ERROR
    assert failure_of(outcome).scope is Scope.PROVIDER
    assert server.mails == []
    assert server.said("AUTH") == server.said("MAIL") == 0
    return outcome


async def test_relay_without_starttls_gets_neither_mail_nor_password(
    authority: Authority,
) -> None:
    """An attacker may have removed it from the offer."""
    async with an_smtp_server(extensions=(*EXTENSIONS, "AUTH PLAIN")) as server:
        outcome = await _refused_for_tls(server, **starttls(authority))

    assert "does not offer STARTTLS" in failure_of(outcome).reason


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_certificate_of_an_unknown_authority_is_refused(
    authority: Authority, tls: str
) -> None:
    """The system's authorities did not sign it."""
    context = authority.context()
    given: dict[str, Any] = {"starttls": context} if tls == "starttls" else {"implicit": context}
    async with an_smtp_server(**given) as server:
        await _refused_for_tls(server, tls=tls)


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
async def test_certificate_for_another_name_is_refused(authority: Authority, tls: str) -> None:
    """It is not the configured relay."""
    context = authority.context("other.test")
    given: dict[str, Any] = {"starttls": context} if tls == "starttls" else {"implicit": context}
    async with an_smtp_server(**given) as server:
        await _refused_for_tls(server, **starttls(authority, tls=tls))


async def test_text_from_before_encryption_does_not_count_after_it(
    authority: Authority,
) -> None:
    """Bytes behind the reply to STARTTLS may come from an attacker: the connection is closed."""
    plays = {"STARTTLS": Say("220 Go ahead\r\n250-mail.test\r\n250 AUTH PLAIN\r\n")}
    async with a_relay(plays, starttls=authority.context(), **KNOWN, **starttls(authority)) as (
        server,
        provider,
    ):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert "more came than the reply" in failure_of(outcome).reason
    assert server.said("AUTH") == 0


@pytest.mark.parametrize(
    ("act", "code"), [(Drop(), "NETWORK_ERROR"), (Stall(), "SMTP_TIMEOUT")], ids=["drop", "stall"]
)
@pytest.mark.parametrize("stage", ["STARTTLS", "TLS"])
async def test_relay_that_disconnects_during_the_tls_handshake_is_deferred(
    authority: Authority, stage: str, act: Any, code: str
) -> None:
    """Nothing was handed over."""
    limits: dict[str, Any] = {"command_limit": SOON, "connect_limit": SOON}
    async with a_relay(
        {stage: act}, starttls=authority.context(), **starttls(authority, **limits)
    ) as (_server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == code
    assert "STARTTLS" in failure_of(outcome).reason


@pytest.mark.parametrize("reply", ["454 4.7.0 Not now", "501 5.5.4 What?"])
async def test_relay_that_refuses_starttls_is_deferred(authority: Authority, reply: str) -> None:
    """It is not a message's fault, with any text."""
    plays = {"STARTTLS": Say(f"{reply}\r\n")}
    async with a_relay(plays, starttls=authority.context(), **starttls(authority)) as (
        server,
        provider,
    ):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).scope is Scope.PROVIDER
    assert server.said("MAIL") == 0


# --- passwords --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanisms", ["PLAIN", "LOGIN", "CRAM-MD5 LOGIN PLAIN"])
async def test_login_happens_once_for_a_connection(mechanisms: str) -> None:
    """By a mechanism that the relay offers."""
    async with a_relay(extensions=(*EXTENSIONS, f"AUTH {mechanisms}"), **KNOWN) as (
        server,
        provider,
    ):
        outcomes = [await sent(provider) for _ in range(2)]

    assert outcomes == [Taken("Q0001"), Taken("Q0002")]
    assert server.said("AUTH") == 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "LOGIN"])
async def test_wrong_password_is_a_fault_of_the_settings(mechanism: str) -> None:
    """No mail goes, and neither password nor user name is in the reason."""
    async with a_relay(extensions=(f"AUTH {mechanism}",), username=USER, password="wrong-8d2c") as (
        server,
        provider,
    ):
        outcome = await sent(provider)

    assert isinstance(outcome, Rejected)
    failure = failure_of(outcome)
    assert (failure.code, failure.category) == ("535", Category.CONFIGURATION_ERROR)
    assert failure.scope is Scope.PROVIDER
    assert "wrong-8d2c" not in repr(outcome)
    assert server.said("MAIL") == 0


async def test_reply_instead_of_a_challenge_is_a_refusal() -> None:
    plays = {"challenge": Say("454 4.7.0 Temporary authentication failure\r\n")}
    async with a_relay(plays, extensions=("AUTH LOGIN",), **KNOWN) as (_server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "454"


async def test_nothing_is_sent_without_a_common_mechanism() -> None:
    """A configured password is never left out."""
    async with a_relay(extensions=("AUTH CRAM-MD5",), **KNOWN) as (server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Deferred)
    assert failure_of(outcome).code == "AUTH_ERROR"
    assert server.said("MAIL") == 0


async def test_password_is_not_shown(tmp_path: Path) -> None:
    """Options may be printed for debugging."""
    async with an_smtp_server() as server:
        options = options_for(server, **KNOWN)

    assert PASSWORD not in f"{options!r} {options} {vars(SmtpProvider(options))}"


async def test_password_repeated_by_the_relay_is_not_reported() -> None:
    """Of a login, logs and timelines have the codes alone."""
    parrot = Say(f"535 5.7.8 no such credentials {PASSWORD}\r\n")
    offered = (*EXTENSIONS, "AUTH PLAIN")
    async with a_relay({"AUTH": parrot}, extensions=offered, **KNOWN) as (_server, provider):
        failure = failure_of(await sent(provider))

    assert failure.code == "535"
    assert PASSWORD not in repr(failure)
