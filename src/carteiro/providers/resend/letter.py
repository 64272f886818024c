"""An e-mail as Resend's API takes it: the same e-mail, id and revision give the same bytes.

That they are the same decides: a key that comes again with other bytes is refused.
"""

from typing import Any

import orjson

from carteiro.email.message import Attachment, Email, is_blank
from carteiro.email.mime import given_header, mail_address, message_id
from carteiro.policy import tags
from carteiro.ports.provider import Parcel


def key_of(parcel: Parcel) -> str:
    """Idempotency key of the mail at Resend: the same for each attempt of a revision."""
    return f"{parcel.message}:{parcel.revision}"


def write_letter(parcel: Parcel, sender: str) -> bytes:
    """The mail as JSON; ValueError on what no mail can hold."""
    email: Email = parcel.content
    given = {name: given_header(name, text) for name, text in email.headers.items()}
    letter: dict[str, Any] = {
        "from": mail_address(sender),
        "to": [mail_address(email.to)],
        "subject": email.subject,
        "headers": {"Message-ID": message_id(sender, parcel.message, parcel.revision)} | given,
        "tags": _tags(parcel),
    }
    for name, addresses in (("cc", email.cc), ("bcc", email.bcc)):
        if addresses:
            letter[name] = [mail_address(each) for each in addresses]
    if email.reply_to:
        letter["reply_to"] = mail_address(email.reply_to)
    if not is_blank(email.html):
        letter["html"] = email.html
    if email.text:
        letter["text"] = email.text
    if email.attachments:
        letter["attachments"] = [_attachment(each) for each in email.attachments]
    return orjson.dumps(letter)


def _tags(parcel: Parcel) -> list[dict[str, str]]:
    email: Email = parcel.content
    told = [
        (tags.MESSAGE, parcel.message),
        (tags.TENANT, parcel.tenant),
        (tags.REVISION, str(parcel.revision)),
    ]
    # Its events list whom a mail was to, and not that there were others.
    if copies := len(email.cc) + len(email.bcc):
        told.append((tags.COPIES, str(copies)))
    return [{"name": name, "value": tags.tag_value(text)} for name, text in told]


def _attachment(file: Attachment) -> dict[str, str]:
    told = {"filename": file.filename, "content": file.content, "content_type": file.content_type}
    return told | {"content_id": file.content_id} if file.content_id else told
