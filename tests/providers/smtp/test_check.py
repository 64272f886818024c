"""Whether a relay could be used: asked before any mail is at stake."""

from carteiro.providers.smtp.provider import SmtpProvider
from support.smtp_sending import a_relay, options_for
from support.smtp_server import EXTENSIONS, PASSWORD, USER, Say, an_smtp_server


async def test_a_relay_that_lets_us_in_can_be_used() -> None:
    """Greeted and logged in; no mail is begun."""
    offered = (*EXTENSIONS, "AUTH PLAIN")
    async with a_relay(extensions=offered, username=USER, password=PASSWORD) as (server, provider):
        faults = await provider.check()

    assert faults == []
    assert not server.said("MAIL")


async def test_what_the_relay_says_is_told() -> None:
    """Whoever looks for the cause gets the relay's own words."""
    async with a_relay({"greeting": Say("421 4.3.2 closed for the night\r\n")}) as (_, provider):
        [fault] = await provider.check()

    assert "closed for the night" in fault.told
    assert not fault.is_deadly
    assert "tried again" in fault.advice


async def test_a_password_that_is_refused_is_deadly() -> None:
    """Each mail would fail for good: it says which settings to look at."""
    offered = (*EXTENSIONS, "AUTH PLAIN")
    async with a_relay(extensions=offered, username=USER, password="wrong") as (_, provider):
        [fault] = await provider.check()

    assert fault.is_deadly
    assert "password of [smtp]" in fault.advice


async def test_a_relay_that_is_not_there_is_told() -> None:
    """Nobody listens."""
    async with an_smtp_server() as server:
        options = options_for(server)

    [fault] = await SmtpProvider(options).check()

    assert not fault.is_deadly
