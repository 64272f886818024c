"""The MIME mail: its parts, its headers, and what it never contains."""

import re
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from carteiro.email.message import Email, make_email
from carteiro.email.mime import given_header, is_international, mail_address, write_mime
from carteiro.model import MessageId, made_at

ID = MessageId("01900000-0000-7000-8000-0000000000aa")
SENDER = "loja@example.com"
PDF = {"filename": "a.pdf", "contentType": "application/pdf", "content": "JVBERi0xLjc="}
LOGO = {"filename": "l.png", "contentType": "image/png", "content": "iVBOR0A=", "contentId": "logo"}


def an_email(**fields: Any) -> Email:
    """A small e-mail; ``fields`` are those of a request."""
    return make_email({"to": "ana@example.com", "subject": "Bom dia", "text": "t"} | fields)


def written(email: Email, *, sender: str = SENDER, revision: int = 1) -> bytes:
    """The mail as bytes."""
    return write_mime(email, sender=sender, message=ID, revision=revision)


def parsed(email: Email, **options: Any) -> EmailMessage:
    """The mail as a strict parser reads it, without defects."""
    mail = message_from_bytes(written(email, **options), policy=policy.default)
    assert isinstance(mail, EmailMessage)
    assert [part.defects for part in mail.walk() if part.defects] == []
    return mail


def shape(mail: EmailMessage) -> Any:
    """The types of a mail's parts, nested as they are."""
    kind = mail.get_content_type().removeprefix("multipart/")
    if not mail.is_multipart():
        return kind
    return {kind: [shape(part) for part in mail.iter_parts() if isinstance(part, EmailMessage)]}


# --- parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"text": "t"}, "text/plain"),
        ({"text": None, "html": "<p>h</p>"}, "text/html"),
        ({"html": "<p>h</p>"}, {"alternative": ["text/plain", "text/html"]}),
        ({"attachments": [PDF]}, {"mixed": ["text/plain", "application/pdf"]}),
        (
            {"html": "<p>h</p>", "attachments": [PDF, LOGO]},
            {
                "mixed": [
                    {"alternative": ["text/plain", {"related": ["text/html", "image/png"]}]},
                    "application/pdf",
                ]
            },
        ),
        (
            {"text": None, "html": "<img src=cid:logo>", "attachments": [LOGO]},
            {"related": ["text/html", "image/png"]},
        ),
        ({"attachments": [LOGO]}, {"mixed": ["text/plain", "image/png"]}),
        ({"html": " \n"}, "text/plain"),
        ({"html": "\n", "attachments": [LOGO]}, {"mixed": ["text/plain", "image/png"]}),
    ],
)
def test_mail_has_the_parts_that_it_needs(fields: dict[str, Any], expected: Any) -> None:
    """And no more around them than that."""
    assert shape(parsed(an_email(**fields))) == expected


def test_headers_are_those_of_the_email() -> None:
    """Sender, recipients and subject, in this order; Bcc is not written."""
    email = an_email(cc=["bia@example.com"], bcc=["secreto@example.com"], replyTo="r@example.com")

    mail = parsed(email)

    assert mail.keys()[:5] == ["From", "To", "Cc", "Reply-To", "Subject"]
    assert [mail[name] for name in mail.keys()[:5]] == [
        SENDER,
        "ana@example.com",
        "bia@example.com",
        "r@example.com",
        "Bom dia",
    ]
    assert b"secreto" not in written(email)


def test_inline_picture_is_found_by_its_id() -> None:
    """It is not listed among the attachments."""
    mail = parsed(an_email(html="<img src='cid:logo'>", attachments=[LOGO, PDF]))

    [picture] = [part for part in mail.walk() if part.get_content_type() == "image/png"]
    assert picture["Content-ID"] == "<logo>"
    assert picture.get_content_disposition() == "inline"
    assert [part.get_filename() for part in mail.iter_attachments()] == ["a.pdf"]


# --- deterministic ----------------------------------------------------------------------------


def test_same_email_is_the_same_bytes() -> None:
    """So that a reader can recognise a duplicate."""
    email = an_email(html="<p>h</p>", attachments=[PDF, LOGO], headers={"X-A": "b"})

    assert written(email) == written(email)


def test_message_id_and_date_come_from_the_message() -> None:
    """The date is the time in the id."""
    mail = parsed(an_email())

    assert mail["Message-ID"] == f"<{ID}.1@example.com>"
    assert mail["Date"] == "Mon, 10 Jun 2024 02:35:18 +0000"


def test_another_revision_is_another_mail() -> None:
    """With its own id and boundaries."""
    email = an_email(html="<p>h</p>")

    first, second = parsed(email), parsed(email, revision=2)

    assert first["Message-ID"] != second["Message-ID"]
    assert first.get_boundary() != second.get_boundary()
    assert first["Date"] == second["Date"]


# --- encodings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("plain", "7bit"),
        ("x" * 998, "7bit"),
        ("x" * 999, "quoted-printable"),
        ("olá, José: está tudo bem por aqui, e por aí?", "quoted-printable"),
        ("日本語のテキスト", "base64"),
        ("От: Анна", "base64"),
        ("From here on", "quoted-printable"),
        ("a\nFrom here on", "quoted-printable"),
        ("a space at the end \nof a line", "quoted-printable"),
        ("a \x1b[31mterminal", "quoted-printable"),
        ("what looks like =_ a boundary", "quoted-printable"),
        (".\n..\n.x", "7bit"),
    ],
)
def test_text_is_encoded_no_more_than_it_needs(text: str, encoding: str) -> None:
    """Decoded, it is the same."""
    mail = parsed(an_email(text=text, html="<p>h</p>"))

    part = mail.get_body(("plain",))
    assert isinstance(part, EmailMessage)
    assert part["Content-Transfer-Encoding"] == encoding
    assert part.get_content().replace("\r\n", "\n") == text


@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\r\nb", "a\n\rb", "é\rb\n"])
def test_every_line_ends_in_crlf(text: str) -> None:
    """Bare CR and bare LF mean different things to different servers, so there are none."""
    mail = written(an_email(text=text, html=text))

    assert re.search(rb"\r(?!\n)|(?<!\r)\n", mail) is None
    assert mail.endswith(b"\r\n")


def test_text_cannot_end_its_part() -> None:
    """Text that contains the boundary is encoded."""
    boundary = f"--=_alternative_{ID}_1"
    text = f"{boundary}\r\n\r\nelse\r\n{boundary}--\r\n"

    mail = parsed(an_email(text=text, html=f"<pre>{text}</pre>"))

    assert shape(mail) == {"alternative": ["text/plain", "text/html"]}
    plain = mail.get_body(("plain",))
    assert isinstance(plain, EmailMessage)
    assert plain.get_content() == text


# --- headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "subject",
    [
        "Olá",
        "日本語" * 50,
        "a" * 150,
        "word " * 29 + "end",
        " a space before",
        "=?utf-8?q?not_encoded?=",
        "😀" * 75,
        'tab-less: colon, comma; <angle> "quote" \\',
    ],
)
def test_subject_is_read_as_it_was_written(subject: str) -> None:
    """In any script and length; its lines stay short."""
    mail = written(an_email(subject=subject))

    assert message_from_bytes(mail, policy=policy.default)["Subject"] == subject
    lines = mail.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert all(len(line) <= 78 or b" " not in line[9:] for line in lines)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("X-Long", "word " * 180 + "end"),
        ("X-Spaces", "a  b   c" + " d" * 100),
        ("X-Coded", "=?utf-8?q?as_given?="),
        ("List-Unsubscribe", f"<https://shop.example/u/{'a' * 300}>, <mailto:u@shop.example>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        ("References", " ".join(f"<{number}.{'x' * 30}@shop.example>" for number in range(20))),
        ("In-Reply-To", "<1@shop.example>"),
    ],
)
def test_custom_header_is_not_mangled(name: str, text: str) -> None:
    """It is folded at its spaces, and there alone."""
    mail = written(an_email(headers={name: text}))

    head = mail.partition(b"\r\n\r\n")[0].decode()
    unfolded = re.sub(r"\r\n(?= )", "", head).split("\r\n")
    assert f"{name}: {text}" in unfolded


def test_url_in_another_script_stays_a_url() -> None:
    """Encoded words would break it."""
    mail = parsed(an_email(headers={"List-Unsubscribe": "<https://loja.example/olá>"}))

    assert mail["List-Unsubscribe"] == "<https://loja.example/ol%C3%A1>"


def test_other_headers_may_be_in_any_script() -> None:
    """They are text."""
    assert parsed(an_email(headers={"X-Loja": "São Paulo"}))["X-Loja"] == "São Paulo"


@pytest.mark.parametrize(
    "name",
    [
        *("From", "to", "CC", "Bcc", "Subject", "Date", "message-id", "Sender", "Received"),
        *("Content-Type", "MIME-Version", "DKIM-Signature", "Return-Path"),
        *("X A", "X:A", "X\r\nBcc", ""),
    ],
)
def test_identifying_headers_cannot_be_set_by_the_sender(name: str) -> None:
    """Also if an earlier check had let them through."""
    email = an_email().model_copy(update={"headers": {name: "x"}})

    with pytest.raises(ValueError, match="must not be set by the sender"):
        written(email)


@pytest.mark.parametrize(
    "changes",
    [
        {"to": "ana@example.com\r\nBcc: x@example.com"},
        {"to": "ana@example.com>, <x@example.com"},
        {"cc": ("a@example.com, b@example.com",)},
        {"reply_to": "r@example.com\n"},
        {"headers": {"X-A": "b\r\nBcc: x@example.com"}},
        {"headers": {"X-A": "b\u2028c"}},
    ],
)
def test_header_injection_is_refused(changes: dict[str, Any]) -> None:
    """Also if an earlier check had let it through."""
    with pytest.raises(ValueError, match="must"):
        written(an_email().model_copy(update=changes))


def test_line_breaks_in_a_subject_add_no_header() -> None:
    """They become part of the encoded text."""
    email = an_email().model_copy(update={"subject": "a\r\nBcc: x@example.com"})

    mail = written(email)

    assert b"Bcc" not in mail


@pytest.mark.parametrize("sender", ["a@example.com\r\nX: y", "a@example.com b@example.com"])
def test_sender_is_one_address(sender: str) -> None:
    """The setting is validated like an address of the e-mail."""
    with pytest.raises(ValueError, match="one word"):
        written(an_email(), sender=sender)


def test_word_longer_than_a_line_is_refused() -> None:
    """It could not be sent whole."""
    with pytest.raises(ValueError, match="longer than a line"):
        written(an_email(headers={"References": "x" * 998}))


# --- addresses --------------------------------------------------------------------------------


def test_domain_in_another_script_is_written_in_ascii() -> None:
    """Every server knows that form."""
    mail = written(an_email(to="ana@exämple.com"), sender="loja@bücher.example")

    assert b"To: ana@xn--exmple-cua.com\r\n" in mail
    assert b"@xn--bcher-kva.example>\r\n" in mail
    assert mail.isascii()


def test_local_part_in_another_script_is_written_unchanged() -> None:
    """There is no other form; the relay has to offer SMTPUTF8 for it."""
    assert "To: josé@example.com\r\n".encode() in written(an_email(to="josé@example.com"))
    assert is_international([mail_address("josé@example.com")])
    assert not is_international([mail_address("jose@exämple.com")])


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "a.pdf",
        "two words.pdf",
        "relatório.pdf",
        'say "hi".txt',
        "semicolon; filename=x.exe",
        "日本語" * 40 + ".pdf",
        "x" * 255,
        "=?utf-8?q?x?=.pdf",
        "100%.txt",
        "'quoted'.txt",
        ".hidden",
    ],
)
def test_file_keeps_its_name(name: str) -> None:
    """In lines that are not too long."""
    mail = written(an_email(attachments=[PDF | {"filename": name}]))

    [file] = parsed(an_email(attachments=[PDF | {"filename": name}])).iter_attachments()
    assert file.get_filename() == name
    assert file.get_content() == b"%PDF-1.7"
    assert max(map(len, mail.split(b"\r\n"))) <= 100


@pytest.mark.parametrize(
    ("given", "kind", "parameters"),
    [
        ("application/pdf", "application/pdf", {}),
        ("text/calendar; method=REQUEST; charset=utf-8", "text/calendar", {"method": "REQUEST"}),
        ('text/csv; header="present"', "text/csv", {"header": "present"}),
        ("application/pdf; name=other.exe", "application/pdf", {}),
        ("multipart/mixed; boundary=x", "application/octet-stream", {}),
        ("message/rfc822", "application/octet-stream", {}),
        ("text/plain; what even is this", "text/plain", {}),
        ('text/plain; a="é"', "text/plain", {}),
    ],
)
def test_file_has_its_declared_type(given: str, kind: str, parameters: dict[str, str]) -> None:
    """With the parameters that make sense; composite types must not be encoded, and files are."""
    [file] = parsed(an_email(attachments=[PDF | {"contentType": given}])).iter_attachments()

    assert file.get_content_type() == kind
    found = dict(file["Content-Type"].params)
    assert parameters.items() <= found.items()
    assert not {"name", "boundary"} & set(found)


def test_empty_file_is_a_file() -> None:
    [file] = parsed(an_email(attachments=[PDF | {"content": ""}])).iter_attachments()

    assert file.get_content() == b""


def test_file_that_is_not_base64_is_refused() -> None:
    """It could be more than a body."""
    email = an_email(attachments=[PDF])
    broken = email.attachments[0].model_copy(update={"content": "a\r\n--x"})

    with pytest.raises(ValueError, match=r"(?i)base64|data"):
        written(email.model_copy(update={"attachments": (broken,)}))


def test_content_id_is_one_word() -> None:
    """As the e-mail's own rules say."""
    email = an_email(html="h", attachments=[LOGO])
    broken = email.attachments[0].model_copy(update={"content_id": "a\r\nb"})

    with pytest.raises(ValueError, match="content id"):
        written(email.model_copy(update={"attachments": (broken,)}))


def test_mail_without_any_body_is_empty() -> None:
    """Validation lets none through, but the writer does not break."""
    mail = parsed(an_email().model_copy(update={"text": None}))

    assert mail.get_content() == "\r\n"


def test_id_of_another_version_has_no_date() -> None:
    """An id given by SQL is random: the mail is dated now, not in some future year."""
    random = MessageId("0a1b2c3d-1111-4222-8333-944455556666")
    before = datetime.now(UTC).replace(microsecond=0)

    raw = write_mime(an_email(), sender=SENDER, message=random, revision=1)

    assert made_at(random) is None
    assert before <= parsedate_to_datetime(message_from_bytes(raw)["Date"]) <= datetime.now(UTC)


@pytest.mark.parametrize("name", ["X-SES-MESSAGE-TAGS", "x-ses-configuration-set"])
def test_relay_headers_cannot_be_set_by_the_sender(name: str) -> None:
    """With them a mail could choose the tags of events reported for others."""
    with pytest.raises(ValueError, match="must not be set by the sender"):
        given_header(name, "carteiro-message=another")
