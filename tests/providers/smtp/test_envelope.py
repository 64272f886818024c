"""The envelope: each recipient once, refused copies are reported, and extensions are used as offered."""

import pytest

from carteiro.email.mime import write_mime
from carteiro.model import Category, Deferred, Rejected, Scope, Taken
from support.sending import SENDER, SOON, a_mail, failure_of, sent
from support.smtp_sending import a_relay
from support.smtp_server import EXTENSIONS, Say, Stall

TO, CC, BCC = "ana@example.com", "bia@example.com", "caio@example.com"
REFUSED = Say("550 5.1.1 No such user\r\n")
LATER = Say("450 4.2.0 Greylisted\r\n")
ONE_BY_ONE = tuple(each for each in EXTENSIONS if each != "PIPELINING")
BOTH = pytest.mark.parametrize(
    "extensions", [EXTENSIONS, ONE_BY_ONE], ids=["pipelined", "one by one"]
)


@BOTH
async def test_mail_goes_to_all_its_recipients(extensions: tuple[str, ...]) -> None:
    """In one go; the blind copy is in the envelope alone."""
    parcel = a_mail(TO, cc=[CC], bcc=[BCC])
    async with a_relay(extensions=extensions) as (server, provider):
        outcome = await sent(provider, parcel)

    assert outcome == Taken("Q0001")
    [mail] = server.mails
    assert mail.sender == SENDER
    assert mail.recipients == [TO, CC, BCC]
    assert BCC.encode() not in mail.content


async def test_delivered_mail_equals_the_written_one() -> None:
    """Dots at the start of lines included."""
    parcel = a_mail(text=".\n..\r\n.x\rend.\n.")
    async with a_relay() as (server, provider):
        await sent(provider, parcel)

    written = write_mime(parcel.content, sender=SENDER, message=parcel.message, revision=1)
    assert server.mails[0].content == written


@BOTH
async def test_refused_copies_are_reported_and_the_mail_goes_on(
    extensions: tuple[str, ...],
) -> None:
    """With the reason; each accepted recipient gets the mail once."""
    plays = {f"RCPT {CC}": REFUSED, f"RCPT {BCC}": LATER}
    async with a_relay(plays, extensions=extensions) as (server, provider):
        outcome = await sent(provider, a_mail(TO, cc=[CC], bcc=[BCC]))

    assert isinstance(outcome, Taken)
    told = [(who, why.code, why.original_code, why.retryable) for who, why in outcome.refused]
    assert told == [(CC, "550", "5.1.1", False), (BCC, "450", "4.2.0", True)]
    assert [mail.recipients for mail in server.mails] == [[TO]]


@BOTH
@pytest.mark.parametrize(("act", "outcome"), [(REFUSED, Rejected), (LATER, Deferred)])
async def test_nothing_is_sent_when_the_recipient_is_refused(
    act: Say, outcome: type, extensions: tuple[str, ...]
) -> None:
    """A mail to its copies alone would not be a delivery."""
    async with a_relay({f"RCPT {TO}": act}, extensions=extensions) as (server, provider):
        said = await sent(provider, a_mail(TO, cc=[CC], bcc=[BCC]))

    assert isinstance(said, outcome)
    assert server.mails == []
    assert server.said("DATA") == 0


async def test_relay_that_expects_the_body_of_a_refused_mail_gets_none() -> None:
    """The only way back is to close the connection: an end of the mail would deliver something."""
    plays = {f"RCPT {TO}": REFUSED, "DATA": Say("354 Go on\r\n")}
    async with a_relay(plays) as (server, provider):
        said = await sent(provider, a_mail(TO))
        server.plays.clear()
        after = await sent(provider, a_mail(CC))

    assert isinstance(said, Rejected)
    assert isinstance(after, Taken)
    assert [mail.recipients for mail in server.mails] == [[CC]]
    assert server.connections == 2


async def test_stalling_copy_leaves_nothing_behind() -> None:
    """Nothing was handed over, to nobody."""
    async with a_relay({f"RCPT {BCC}": Stall()}, command_limit=SOON) as (server, provider):
        outcome = await sent(provider, a_mail(TO, bcc=[BCC]))

    assert isinstance(outcome, Deferred)
    assert server.mails == []


async def test_repeated_recipient_gets_one_mail() -> None:
    """To, cc and bcc may overlap."""
    async with a_relay() as (server, provider):
        await sent(provider, a_mail(TO, cc=[TO, CC], bcc=[CC, BCC]))

    assert server.mails[0].recipients == [TO, CC, BCC]


async def test_sender_is_that_of_the_email_or_the_default() -> None:
    """As the tenant says, or as the settings do."""
    async with a_relay() as (server, provider):
        await sent(provider, a_mail(**{"from": "own@example.org"}))
        await sent(provider, a_mail())

    assert [mail.sender for mail in server.mails] == ["own@example.org", SENDER]
    assert b"From: own@example.org\r\n" in server.mails[0].content


async def test_missing_sender_is_reported_with_advice() -> None:
    """The failure is permanent."""
    async with a_relay(default_from="") as (server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).category is Category.CONFIGURATION_ERROR
    assert "smtp.default_from" in failure_of(outcome).reason
    assert server.connections == 0


async def test_mail_that_cannot_be_written_is_rejected() -> None:
    """A word that fits no line could not be sent whole."""
    parcel = a_mail(headers={"List-Unsubscribe": "x" * 998})
    async with a_relay() as (server, provider):
        outcome = await sent(provider, parcel)

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).code == "INVALID_PAYLOAD"
    assert server.connections == 0


@pytest.mark.parametrize("given", ["here.test", ""])
async def test_ehlo_has_the_configured_name(given: str) -> None:
    """Or this host's full name or address."""
    async with a_relay(hello_name=given) as (server, provider):
        await sent(provider)

    [hello] = [command for command in server.commands if command.startswith("EHLO")]
    name = hello.removeprefix("EHLO ")
    assert name == given if given else "." in name


# --- extensions -------------------------------------------------------------------------------


async def test_envelope_is_pipelined_where_offered() -> None:
    """A relay that answers only after DATA is not waited for."""
    plays = {"MAIL": Say(""), "RCPT": Say(""), "DATA": Say("250 a\r\n550 5.1.1 b\r\n503 c\r\n")}
    async with a_relay(plays) as (_server, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).original_code == "5.1.1"


@pytest.mark.parametrize(
    ("extensions", "parameters"), [(EXTENSIONS, "SIZE="), (("PIPELINING",), "")]
)
async def test_size_is_sent_where_offered(extensions: tuple[str, ...], parameters: str) -> None:
    """A relay without SIZE would not understand it."""
    async with a_relay(extensions=extensions) as (server, provider):
        await sent(provider)

    [mail] = server.mails
    size = len(mail.content)
    assert mail.parameters == (f"{parameters}{size}" if parameters else "")


@pytest.mark.parametrize("limit", ["SIZE 10", "SIZE 0", "SIZE"])
async def test_mail_over_the_size_limit_of_the_relay_is_not_sent(limit: str) -> None:
    """Only if it has a limit; nothing or 0 is none."""
    async with a_relay(extensions=(limit,)) as (server, provider):
        outcome = await sent(provider)

    is_limited = limit == "SIZE 10"
    assert isinstance(outcome, Rejected) is is_limited
    assert len(server.mails) == (0 if is_limited else 1)
    if is_limited:
        assert failure_of(outcome).original_code == "5.3.4"
        assert server.said("MAIL") == 0


async def test_address_in_another_script_needs_smtputf8() -> None:
    """The whole mail is then international; its domain is ASCII all the same."""
    async with a_relay() as (server, provider):
        outcome = await sent(provider, a_mail("josé@exämple.com"))

    assert isinstance(outcome, Taken)
    [mail] = server.mails
    assert mail.recipients == ["josé@xn--exmple-cua.com"]
    assert mail.parameters.endswith("BODY=8BITMIME SMTPUTF8")
    assert "To: josé@xn--exmple-cua.com\r\n".encode() in mail.content


async def test_domain_in_another_script_needs_no_extension() -> None:
    """It has a form in ASCII."""
    async with a_relay(extensions=("PIPELINING",)) as (server, provider):
        outcome = await sent(provider, a_mail("jose@exämple.com", cc=["ana@例え.test"]))

    assert isinstance(outcome, Taken)
    assert server.mails[0].recipients == ["jose@xn--exmple-cua.com", "ana@xn--r8jz45g.test"]
    assert server.mails[0].content.isascii()


async def test_relay_without_smtputf8_gets_no_international_mail() -> None:
    """It could only mangle it; the next mail goes over the same connection."""
    async with a_relay(extensions=("PIPELINING",)) as (server, provider):
        outcome = await sent(provider, a_mail("josé@example.com"))
        after = await sent(provider)

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).code == "SMTPUTF8_MISSING"
    assert failure_of(outcome).scope is Scope.RECIPIENT
    assert isinstance(after, Taken)
    assert server.connections == 1
