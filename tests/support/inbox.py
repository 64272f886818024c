"""Mails in the sandbox's inbox."""

from typing import Any

from carteiro.model import InboxMail, MessageId
from support.builders import ACME, an_id


def a_mail(message: MessageId | None = None, **changes: Any) -> InboxMail:
    """A mail that the sandbox handed over."""
    fields: dict[str, Any] = {
        "tenant": ACME,
        "to": "ana@example.com",
        "subject": "Olá ✉",
        "content": '{"html":"<p>Bom dia</p>"}',
        "provider_id": "sandbox-1",
    }
    return InboxMail(message=message or an_id(), **(fields | changes))
