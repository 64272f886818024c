"""Checks of a relay before any mail is sent."""

from carteiro.providers.smtp.provider import SmtpProvider
from support.smtp_sending import a_relay, options_for
from support.smtp_server import EXTENSIONS, PASSWORD, USER, Say, an_smtp_server


async def test_relay_that_accepts_the_login_can_be_used() -> None:
    """Greeted and logged in; no mail is begun."""
    offered = (*EXTENSIONS, "AUTH PLAIN")
    async with a_relay(extensions=offered, username=USER, password=PASSWORD) as (server, provider):
        faults = await provider.check()

    assert faults == []
    assert not server.said("MAIL")


async def test_text_of_the_relay_is_reported() -> None:
    """For the search of the cause."""
    async with a_relay({"greeting": Say("421 4.3.2 closed for the night\r\n")}) as (_, provider):
        [fault] = await provider.check()

    assert "closed for the night" in fault.told
    assert not fault.is_deadly
    assert "is retried" in fault.advice


async def test_refused_password_is_fatal() -> None:
    """Each mail would fail for good: the finding names the settings to check."""
    offered = (*EXTENSIONS, "AUTH PLAIN")
    async with a_relay(extensions=offered, username=USER, password="wrong") as (_, provider):
        [fault] = await provider.check()

    assert fault.is_deadly
    assert "password of [smtp]" in fault.advice


async def test_unreachable_relay_is_reported() -> None:
    async with an_smtp_server() as server:
        options = options_for(server)

    [fault] = await SmtpProvider(options).check()

    assert not fault.is_deadly
