"""A mail as pages show it: its parts, and its HTML in a frame that can do nothing.

Put `mail_frame` behind a page of its own, and the macros of ``mail.html`` into the page around it::

    @Show("things/{id}/mail", needs="GET …")
    async def frame(self, visit): return mail_frame(visit, email, page="things/ID")

    visit.page("thing.html", mail=shown_mail(visit, email, ...), frame="things/ID/mail")
    {% import "mail.html" as mails with context %}{{ mails.mail(mail, frame) }}

The frame is safe three times: it has an origin of its own (sandbox), its policy allows no scripts, forms or
requests, and elements that could still give away that somebody reads the mail are taken out of it.
"""

import re
from html import unescape
from typing import Final
from urllib.parse import unquote

from starlette.responses import HTMLResponse, Response

from carteiro.console.visit import Visit
from carteiro.email.message import Attachment, Email, is_blank, restore_email
from carteiro.email.mime import write_mime
from carteiro.errors import InvalidMessage
from carteiro.model import MessageId, value

PARTS: Final = ("html", "text", "source", "headers", "links")
_MOST_SHOWN: Final = 64 * 1024  # characters of a text in a page
_MOST_LINKS: Final = 100
_MOST_PICTURES: Final = (
    4 * 1024 * 1024
)  # characters of pictures in a frame: one may be named many times
_SENDER = "unknown@invalid"

# No policy stops these from looking up names and opening connections, or from changing what a frame is.
_TAKEN_OUT = re.compile(
    r"<(?=link|meta|base|script|iframe|frame|object|embed|applet|portal|fencedframe)", re.IGNORECASE
)
_PICTURE = re.compile(r"\bcid:([^\"'\s()<>]{1,765})", re.IGNORECASE)
_PICTURE_TYPES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_LINK = re.compile(
    r"<a\s[^<>]{0,1000}?\bhref\s*=\s*(?:\"([^\"<>]{1,2000})\"|'([^'<>]{1,2000})')", re.IGNORECASE
)
_HEADER = re.compile(r"([^:\r\n]+):([^\r\n]*(?:\r\n[ \t][^\r\n]*)*)")

# Mails are made for light pages. Links open nowhere: their target would be a new window, which a sandbox refuses.
_BEFORE = (
    '<!doctype html><html><head><meta charset="utf-8"><base target="_blank">'
    '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light;'
    "background:#fff;color:#111;font:15px/1.5 system-ui,sans-serif}img{max-width:100%}</style></head>"
)
_POLICY = (
    "default-src 'none'; sandbox; style-src 'unsafe-inline'; img-src data:{remote}; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)


@value
class File:
    """An attachment, without its content."""

    name: str
    type: str
    size: int


@value
class Mail:
    """The part of a mail that a page shows, and what there is besides.

    ``parts``: those that it has. ``text``: the text of the part; None if it is the frame, or a table.
    """

    part: str
    parts: tuple[str, ...]
    text: str | None
    is_cut: bool
    headers: tuple[tuple[str, str], ...]
    links: tuple[str, ...]
    files: tuple[File, ...]
    images: bool
    is_narrow: bool


def email_in(content: str | None) -> Email | None:
    """The e-mail of a stored content; None if there is none, or its template is not rendered yet."""
    try:
        email = restore_email(content) if content else None
    except InvalidMessage:
        return None
    return None if email is None or email.needs_words else email


def shown_mail(visit: Visit, email: Email, *, message: MessageId, revision: int) -> Mail:
    """The mail, with the part that the address asks for, else the best that it has."""
    parts = _parts_of(email)
    asked = visit.query.get("part", "")
    part = asked if asked in parts else parts[0]
    source = _source(email, message, revision) if part in {"source", "headers"} else ""
    whole = {"text": email.text or "", "source": source}.get(part)
    return Mail(
        part,
        parts,
        text=None if whole is None else whole[:_MOST_SHOWN],
        is_cut=whole is not None and len(whole) > _MOST_SHOWN,
        headers=_headers(source) if part == "headers" else (),
        links=_links(email) if part == "links" else (),
        files=tuple(_file(each) for each in email.attachments),
        images="images" in visit.query,
        is_narrow=visit.query.get("width") == "phone",
    )


def mail_frame(visit: Visit, email: Email | None, *, page: str) -> Response:
    """The HTML of a mail for a frame; a browser that opens it as a page of its own gets ``page``."""
    if visit.request.headers.get("sec-fetch-dest") == "document":
        return visit.to(page)
    html = "" if email is None else email.html or ""
    remote = " https:" if "images" in visit.query else ""
    return HTMLResponse(
        _BEFORE + _with_pictures(_TAKEN_OUT.sub("<x-", html), email),
        headers={
            "Content-Security-Policy": _POLICY.format(remote=remote),
            "X-Frame-Options": "SAMEORIGIN",
            "Referrer-Policy": "no-referrer",
            "X-DNS-Prefetch-Control": "off",
        },
    )


def _parts_of(email: Email) -> tuple[str, ...]:
    has_html = not is_blank(email.html)
    has = {"html": has_html, "text": bool(email.text), "links": has_html}
    return tuple(each for each in PARTS if has.get(each, True))


def _with_pictures(html: str, email: Email | None) -> str:
    """The HTML with the pictures that came with the mail in it: a frame may load nothing."""
    pictures = {
        each.content_id: f"data:{each.content_type.lower()};base64,{each.content}"
        for each in (() if email is None else email.attachments)
        if each.content_id and each.content_type.lower() in _PICTURE_TYPES
    }
    room = _MOST_PICTURES

    def picture(found: re.Match[str]) -> str:
        nonlocal room
        given = pictures.get(unquote(found[1]), "")
        room -= len(given)
        return given if given and room >= 0 else found[0]

    return _PICTURE.sub(picture, html) if pictures else html


def _source(email: Email, message: MessageId, revision: int) -> str:
    try:
        whole = write_mime(email, sender=email.from_ or _SENDER, message=message, revision=revision)
    except ValueError as error:
        return str(error)
    return whole.decode()


def _headers(source: str) -> tuple[tuple[str, str], ...]:
    head = source.partition("\r\n\r\n")[0]
    return tuple((name, " ".join(text.split())) for name, text in _HEADER.findall(head))


def _links(email: Email) -> tuple[str, ...]:
    targets = dict.fromkeys(unescape(one or two) for one, two in _LINK.findall(email.html or ""))
    return tuple(targets)[:_MOST_LINKS]


def _file(attachment: Attachment) -> File:
    size = len(attachment.content) * 3 // 4 - attachment.content[-2:].count("=")
    return File(attachment.filename, attachment.content_type, size)
