"""The usual e-mail: a few texts and nothing else, checked without the validator, which takes several times as long.

Everything else, and every fault, is left to `read_email` and `make_email`, which accept the same e-mails.
"""

from itertools import combinations
from typing import ClassVar, Self

import orjson

from carteiro.email.message import MOST_PLAIN_BYTES, Email, is_blank, stored_content, subject_fault
from carteiro.model import Delivery, value
from carteiro.policy.addresses import judge_address

_NAMES = ("to", "subject", "html", "text", "from")  # in the order of `Email`
_IN_ORDER = {names for size in range(6) for names in combinations(_NAMES, size)}


@value
class PlainEmail:
    """An e-mail of texts, without anything that an `Email` may have besides; ``content`` is its JSON."""

    to: str
    subject: str
    from_: str | None
    content: str

    template: ClassVar[None] = None
    recipient: ClassVar[None] = None
    external_id: ClassVar[None] = None
    scheduled_at: ClassVar[None] = None
    ttl: ClassVar[None] = None
    tags: ClassVar[tuple[str, ...]] = ()
    priority: ClassVar[int] = 5
    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE

    def sent_by(self, sender: str) -> Self:
        """The same e-mail with a From, which it did not have."""
        content = f'{self.content[:-1]},"from":{orjson.dumps(sender).decode()}}}'
        return type(self)(self.to, self.subject, sender, content)


def plain_email(fields: object) -> PlainEmail | None:
    """Make an e-mail of these fields; None if they are not only texts, or have a fault, or are not in normal form."""
    if not isinstance(fields, dict):
        return None
    texts = fields
    if tuple(fields) not in _IN_ORDER:
        texts = {name: fields[name] for name in _NAMES if name in fields}
        if len(texts) < len(fields):
            return None
    for each in texts.values():
        if type(each) is not str:
            return None
    to, subject, sender = texts.get("to", ""), texts.get("subject", ""), texts.get("from")
    html, text = texts.get("html", ""), texts.get("text", "")
    if (
        judge_address(to) != to
        or (sender is not None and judge_address(sender) != sender)
        or subject_fault(subject) is not None
        or (is_blank(html) and is_blank(text))
        or "\0" in html
        or "\0" in text
    ):
        return None
    try:
        content = orjson.dumps(texts)
    except orjson.JSONEncodeError:  # half a surrogate pair
        return None
    return (
        PlainEmail(to, subject, sender, content.decode())
        if len(content) <= MOST_PLAIN_BYTES
        else None
    )


def read_plain(body: bytes) -> PlainEmail | None:
    """The same for the JSON of a request."""
    if len(body) > MOST_PLAIN_BYTES:
        return None
    try:
        return plain_email(orjson.loads(body))
    except orjson.JSONDecodeError:
        return None


def content_of(email: Email | PlainEmail) -> str:
    """The JSON to store."""
    return email.content if isinstance(email, PlainEmail) else stored_content(email)
