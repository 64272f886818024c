"""An e-mail as MIME bytes: the same e-mail, id and revision give the same bytes.

Pure: no clock, no randomness, no lookups. Message-ID, Date and boundaries come from the message's
own id, so that a repeated mail is recognized as the same one. The result is ASCII in lines of at
most 998 bytes that end in CRLF. Only an address with a non-ASCII local part is written unchanged;
then the relay must offer SMTPUTF8 (see `is_international`).
"""

import binascii
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

import idna

from carteiro.email.message import Attachment, Email, is_blank
from carteiro.model import MessageId, made_at

_LONGEST_LINE = 998
_USUAL_LINE = 78
_BASE64_LINE = 76
_WORD_BYTES = 45  # in base64 they make an encoded word of 72 characters
_PARAMETER_CHARS = 60

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_PARTS_WORDS = re.compile(r"[\x00-\x20<>,\x7f-\x9f\u2028\u2029]")
_WORDS = re.compile(r" *[^ ]+")
_PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()+,-]{0,77}")
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"  # noqa: S105 - the RFC 2045 word for it
_MEDIA_TYPE = re.compile(rf"(?P<type>{_TOKEN})/{_TOKEN}")
_PARAMETER = re.compile(rf';\s*({_TOKEN})=({_TOKEN}|"[A-Za-z0-9 !#$&^_.+/:=-]*")\s*(?=;|$)')
_OWN_PARAMETERS = frozenset({"boundary", "name"})
_COMPOSITE_TYPES = frozenset({"message", "multipart"})  # must not be base64, but attachments are

_ASCII = "".join(map(chr, range(0x20, 0x7F)))
_PLAIN = f"\t\r\n{_ASCII}".encode()

# The sender must not set headers that identify or authenticate a mail, even if a check let them through.
_HEADER_NAME = re.compile(r"(?!content-)[A-Za-z0-9_-]{1,76}", re.ASCII | re.IGNORECASE)
_OF_THE_RELAY = "x-ses-"  # they would set the configuration set, tags and identity of the mail
_NOT_GIVEN = frozenset(
    {
        *("authentication-results", "bcc", "cc", "date", "dkim-signature", "from", "message-id"),
        *("mime-version", "received", "reply-to", "return-path", "sender", "subject", "to"),
    }
)


class _Entity(NamedTuple):
    """A part of a mail: its header lines, and a body that ends with a line break."""

    head: str
    body: str


def write_mime(email: Email, *, sender: str, message: MessageId, revision: int) -> bytes:
    """Write the mail; ``sender`` is its From. Bcc is left out.

    Raises ValueError on content that MIME cannot represent. Of the e-mails that `make_email` accepts this is
    only one with a header word longer than a line.
    """
    key = f"{message}_{revision}"
    entity = _body(email, key)
    head = "".join(
        (
            _addresses("From", (sender,)),
            _addresses("To", (email.to,)),
            _addresses("Cc", email.cc) if email.cc else "",
            _addresses("Reply-To", (email.reply_to,)) if email.reply_to else "",
            _text_header("Subject", email.subject),
            f"Date: {_date(message)}\r\n",
            _folded("Message-ID", message_id(sender, message, revision)),
            "MIME-Version: 1.0\r\n",
            *(_given_header(name, text) for name, text in email.headers.items()),
        )
    )
    return f"{head}{entity.head}\r\n{entity.body}".encode()


def message_id(sender: str, message: MessageId, revision: int) -> str:
    """The Message-ID, the same in each attempt and with each provider."""
    return f"<{message}.{revision}@{mail_address(sender).rpartition('@')[2]}>"


def given_header(name: str, text: str) -> str:
    """The text of a header given by the sender; ValueError if the sender must not set it."""
    is_relays = name.lower().startswith(_OF_THE_RELAY)
    if not _HEADER_NAME.fullmatch(name) or name.lower() in _NOT_GIVEN or is_relays:
        raise ValueError("a header must not be set by the sender")
    if _CONTROL.search(text):
        raise ValueError("a header must not contain control characters")
    return text.strip(" ")


@lru_cache(maxsize=256)  # a mail has its sender in three places, and its recipient in two
def mail_address(address: str) -> str:
    """The address with its domain in ASCII. Raises ValueError if it could be read as more than one."""
    if _PARTS_WORDS.search(address):
        raise ValueError("an address must be one word")
    if address.isascii():
        return address
    local, at, domain = address.rpartition("@")
    return f"{local}{at}{idna.encode(domain, uts46=True).decode()}"


def is_international(addresses: Iterable[str]) -> bool:
    """True if one of them, as `mail_address` returns it, needs SMTPUTF8."""
    return not all(map(str.isascii, addresses))


# --- headers ----------------------------------------------------------------------------------


def _addresses(name: str, addresses: Sequence[str]) -> str:
    return _folded(name, ", ".join(map(mail_address, addresses)))


def _given_header(name: str, text: str) -> str:
    """A header given by the sender; ASCII is not changed, and a URL stays a URL."""
    text = given_header(name, text)
    if text.isascii():
        return _folded(name, text)
    if name.lower().startswith("list-"):
        return _folded(name, quote(text, safe=_ASCII))
    return f"{name}: {_encoded_words(text)}\r\n"


def _text_header(name: str, text: str) -> str:
    """A text header; decoding it gives the same text."""
    is_plain = text.isascii() and text.isprintable() and "=?" not in text
    if is_plain and text == text.strip(" ") and len(text) < _LONGEST_LINE - len(name):
        return _folded(name, text)
    return f"{name}: {_encoded_words(text)}\r\n"


def _folded(name: str, text: str) -> str:
    """The header in lines of the usual length, folded only at spaces."""
    line = f"{name}: {text}"
    if len(line) <= _USUAL_LINE:
        return f"{line}\r\n"
    return "\r\n".join(_fold(f"{name}:", _WORDS.findall(f" {text}"))) + "\r\n"


def _fold(line: str, words: Iterable[str]) -> Iterator[str]:
    is_name = True
    for word in words:
        # Many clients misread a header name alone on its line: keep the first word on it if it fits.
        room = _LONGEST_LINE if is_name else _USUAL_LINE
        if len(line.encode()) + len(word.encode()) > room:
            yield line
            line = ""
        line += word
        is_name = False
        if len(line.encode()) > _LONGEST_LINE:
            raise ValueError("a word of a header is longer than a line (998 bytes): shorten it")
    yield line


def _encoded_words(text: str) -> str:
    """RFC 2047, in base64; split between characters, as each encoded word must be complete text."""
    words = [
        f"=?utf-8?b?{binascii.b2a_base64(some, newline=False).decode()}?="
        for some in _cut(text.encode(), _WORD_BYTES)
    ]
    return "\r\n ".join(words)


def _cut(text: bytes, size: int) -> Iterator[bytes]:
    """Split the text into pieces of at most ``size`` bytes, each complete UTF-8."""
    start = 0
    while start < len(text):
        end = start + size
        while end < len(text) and text[end] & 0xC0 == 0x80:  # noqa: PLR2004 - a byte that continues a character
            end -= 1
        yield text[start:end]
        start = end


def _date(message: MessageId) -> str:
    made = made_at(message)
    return _date_at(int(time.time() if made is None else made))


@lru_cache(maxsize=64)  # messages that are sent together were often accepted together
def _date_at(second: int) -> str:
    at = time.gmtime(second)
    return (
        f"{_DAYS[at.tm_wday]}, {at.tm_mday:02} {_MONTHS[at.tm_mon - 1]} {at.tm_year}"
        f" {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} +0000"
    )


# --- bodies -----------------------------------------------------------------------------------


def _body(email: Email, key: str) -> _Entity:
    """The body with its attachments: mixed(alternative(text, related(html, pictures)), files)."""
    has_html = not is_blank(email.html)
    pictures = [each for each in email.attachments if each.content_id and has_html]
    files = [each for each in email.attachments if not (each.content_id and has_html)]
    shown = [_text("plain", email.text)] if email.text else []
    if email.html is not None and has_html:
        html = _text("html", email.html)
        within = [html, *(_file(each, "inline") for each in pictures)]
        shown.append(_multipart("related", key, within, ' type="text/html";') if pictures else html)
    if not shown:
        shown = [_text("plain", "")]
    whole = shown[0] if len(shown) == 1 else _multipart("alternative", key, shown)
    if not files:
        return whole
    return _multipart("mixed", key, [whole, *(_file(each, "attachment") for each in files)])


def _multipart(subtype: str, key: str, parts: Sequence[_Entity], more: str = "") -> _Entity:
    """The parts between boundaries that no part can contain.

    "=_" does not occur in base64 or quoted-printable, and text with it is never sent unencoded.
    """
    boundary = f"=_{subtype}_{key}"
    head = f'Content-Type: multipart/{subtype};{more}\r\n boundary="{boundary}"\r\n'
    body = "".join([f"--{boundary}\r\n{part.head}\r\n{part.body}" for part in parts])
    return _Entity(head, f"{body}--{boundary}--\r\n")


def _text(subtype: str, text: str) -> _Entity:
    """Text in the simplest encoding: none, else quoted-printable, else base64.

    The last line break belongs to the boundary that follows, so the decoded text is unchanged.
    """
    text = f"{_with_crlf(text)}\r\n"
    kind = f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding:"
    if _may_go_plain(text):
        return _Entity(f"{kind} 7bit\r\n", text)
    encoded = text.encode()
    escaped = len(encoded) - len(text.encode("ascii", "ignore")) + encoded.count(b"=")
    if 6 * escaped > len(encoded):  # beyond this, base64 is shorter
        lines = _wrapped(binascii.b2a_base64(encoded[:-2], newline=False).decode())
        return _Entity(f"{kind} base64\r\n", lines)
    # In text mode, line ends are kept and spaces before them escaped; the SMTP client escapes dots.
    return _Entity(f"{kind} quoted-printable\r\n", binascii.b2a_qp(encoded).decode())


def _with_crlf(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\n", "\r\n")


def _may_go_plain(text: str) -> bool:
    """True if no relay has a reason to change the text or to misread it."""
    if text.encode().translate(None, _PLAIN) or " \r\n" in text:
        return False
    # One character is found ten times as fast as two.
    if ("_" in text and "=_" in text) or ("\t" in text and "\t\r\n" in text):
        return False
    if "F" in text and (text.startswith("From ") or "\nFrom " in text):
        return False
    return len(text) <= _LONGEST_LINE or max(map(len, text.split("\r\n"))) <= _LONGEST_LINE


def _wrapped(base64: str) -> str:
    lines = [base64[at : at + _BASE64_LINE] for at in range(0, len(base64), _BASE64_LINE)]
    return "\r\n".join([*lines, ""]) if lines else "\r\n"


# --- files ------------------------------------------------------------------------------------


def _file(attachment: Attachment, disposition: str) -> _Entity:
    binascii.a2b_base64(attachment.content, strict_mode=True)  # refuses anything else
    head = f"Content-Type: {_content_type(attachment.content_type)}\r\n"
    head += "Content-Transfer-Encoding: base64\r\n"
    if attachment.content_id:
        if _CONTROL.search(attachment.content_id):
            raise ValueError("a content id must not contain control characters")
        head += _folded("Content-ID", f"<{quote(attachment.content_id, safe=_ASCII)}>")
    head += f"Content-Disposition: {disposition};\r\n {_file_name(attachment.filename)}\r\n"
    return _Entity(head, _wrapped(attachment.content))


def _content_type(given: str) -> str:
    """The media type with its well-formed parameters, except those that we set."""
    media = _MEDIA_TYPE.match(given)
    if media is None or media["type"].lower() in _COMPOSITE_TYPES:
        return "application/octet-stream"
    parameters = [
        f";\r\n {name}={text}"
        for name, text in _PARAMETER.findall(given, media.end())
        if name.lower() not in _OWN_PARAMETERS
    ]
    return media[0] + "".join(parameters)


def _file_name(name: str) -> str:
    """RFC 2231 if a plain quoted name could be misread."""
    if _PLAIN_FILE_NAME.fullmatch(name):
        return f'filename="{name}"'
    pieces = [quote(some, safe="") for some in _cut(name.encode(), _PARAMETER_CHARS // 3)]
    if len(pieces) == 1:
        return f"filename*=utf-8''{pieces[0]}"
    pieces[0] = f"utf-8''{pieces[0]}"
    return ";\r\n ".join(f"filename*{index}*={piece}" for index, piece in enumerate(pieces))
