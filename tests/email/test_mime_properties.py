"""An accepted e-mail is written so that the parser of the standard library reads the same e-mail again."""

import base64
import re
from email import message_from_bytes, policy
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from carteiro.email.message import Email, is_blank, make_email
from carteiro.email.mime import mail_address, write_mime
from carteiro.model import MessageId

ID = MessageId("01900000-0000-7000-8000-0000000000aa")

_CONTROL = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]))
LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=_CONTROL))
SUBJECTS = LINES.map(lambda text: text[:150]).filter(bool)
# Hard cases for a writer: line ends of all kinds, dots, long lines, spaces at ends, escapes.
BODIES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        st.sampled_from(["\r", "\n", "\r\n", ".", "..", " ", "\t", "=", "=_", "--", "From ", "é"]),
        st.integers(70, 1100).map(lambda size: "x" * size),
        st.integers(70, 400).map(lambda size: "ç" * size),
    ),
    max_size=12,
).map("".join)
LOCALS = st.from_regex(r"[a-z0-9]{1,12}(\.[a-z0-9]{1,12})?", fullmatch=True) | st.sampled_from(
    ["josé", "用户", "o'brien", "a+b", "x" * 64]
)
DOMAINS = st.sampled_from(["example.com", "exämple.com", "例え.test", f"{'a' * 60}.example.com"])
ADDRESSES = st.builds(lambda local, domain: f"{local}@{domain}", LOCALS, DOMAINS)
HEADERS = st.dictionaries(
    st.from_regex(r"X-[A-Za-z0-9-]{1,20}", fullmatch=True),
    LINES.map(lambda text: " ".join(text.split())[:900]).filter(lambda text: "=?" not in text),
    max_size=3,
).filter(lambda headers: len({name.lower() for name in headers}) == len(headers))
NO_PATHS = str.maketrans("/\\", "__")
FILES = st.fixed_dictionaries(
    {
        # Without paths, which are refused; stripped, as the parser does it.
        "filename": LINES.map(lambda text: text.translate(NO_PATHS)[:255].strip()).filter(
            lambda name: name not in {"", ".", ".."}
        ),
        "contentType": st.sampled_from(["application/pdf", "text/csv; charset=utf-8", "image/png"]),
        "content": st.binary(max_size=300).map(lambda raw: base64.b64encode(raw).decode()),
    },
    optional={"contentId": st.from_regex(r"[a-z0-9.@-]{1,30}", fullmatch=True)},
)
EMAILS = st.fixed_dictionaries(
    {
        "to": ADDRESSES,
        "subject": SUBJECTS,
        "text": BODIES.filter(lambda body: not is_blank(body)),
    },
    optional={
        "html": BODIES.filter(lambda body: not is_blank(body)),
        "cc": st.lists(ADDRESSES, max_size=5),
        "bcc": st.lists(st.just("blind-7c1d@example.com"), max_size=2),
        "replyTo": ADDRESSES,
        "headers": HEADERS,
        "attachments": st.lists(FILES, max_size=3),
    },
)


def lines_of(text: str | None) -> list[str]:
    """A body without regard to its line ends."""
    normal = (text or "").replace("\r\n", "\n").replace("\r", "\n")
    return normal.split("\n")


def body_of(mail: EmailMessage, subtype: str) -> list[str]:
    """The body of that type as it is read; alone in its mail it ends with a line, unless that is encoded."""
    part = mail.get_body((subtype,))
    assert isinstance(part, EmailMessage)
    found = lines_of(part.get_payload(decode=True).decode())  # type: ignore[union-attr]
    has_one_more = part is mail and part["Content-Transfer-Encoding"] != "base64"
    return found[:-1] if has_one_more else found


def addresses_of(mail: EmailMessage, name: str) -> list[str]:
    """The addresses of a header, as a reader parses them."""
    found: tuple[Address, ...] = mail[name].addresses if mail[name] else ()
    raw = [address.addr_spec.encode("utf-8", "surrogateescape") for address in found]
    return [address.decode() for address in raw]


def read_again(email: Email) -> tuple[bytes, EmailMessage]:
    """The mail, as bytes and as a reader parses it."""
    raw = write_mime(email, sender="loja@example.com", message=ID, revision=1)
    mail = message_from_bytes(raw, policy=policy.SMTPUTF8)
    assert isinstance(mail, EmailMessage)
    return raw, mail


@settings(max_examples=100, deadline=None)
@given(EMAILS)
def test_parsed_mail_equals_the_written_one(fields: dict[str, Any]) -> None:
    """Subject, addresses, headers, bodies and files, without defects."""
    email = make_email(fields)

    _, mail = read_again(email)

    assert [part.defects for part in mail.walk() if part.defects] == []
    assert mail["Subject"] == email.subject
    assert addresses_of(mail, "To") == [mail_address(email.to)]
    assert addresses_of(mail, "Cc") == [mail_address(each) for each in email.cc]
    for name, text in email.headers.items():
        assert mail[name] == text.strip(" ")
    assert body_of(mail, "plain") == lines_of(email.text)
    if email.html:
        assert body_of(mail, "html") == lines_of(email.html)
    files = {
        (part.get_filename(), part.get_payload(decode=True))
        for part in mail.walk()
        if part.get_content_disposition()
    }
    assert files == {(file.filename, base64.b64decode(file.content)) for file in email.attachments}


@settings(max_examples=100, deadline=None)
@given(EMAILS)
def test_mail_on_the_wire_is_well_formed(fields: dict[str, Any]) -> None:
    """Lines end in CRLF and have at most 998 bytes; no Bcc; the same bytes each time."""
    email = make_email(fields)

    raw, _ = read_again(email)

    assert re.search(rb"\r(?!\n)|(?<!\r)\n", raw) is None
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert raw.endswith(b"\r\n")
    assert b"blind-7c1d" not in raw
    assert raw == read_again(email)[0]
    head, _, body = raw.partition(b"\r\n\r\n")
    assert body.isascii()
    local_parts = [email.to, email.reply_to or "", *email.cc]
    assert head.isascii() or any(not part.split("@")[0].isascii() for part in local_parts)
