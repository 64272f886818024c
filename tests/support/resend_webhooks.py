"""Resend's webhook as tests play it: signed with a secret that is made at run time."""

import base64
import hmac
import secrets
import time
from hashlib import sha256
from typing import Any

import orjson

from carteiro.model import MessageId


def a_secret() -> str:
    """A signing secret, as Resend shows it."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"


def signed(
    body: bytes, secret: str, *, identity: str = "msg_1", at: float | None = None
) -> dict[str, str]:
    """The headers of a request with this body."""
    sent_at = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{identity}.{sent_at}.".encode() + body, sha256)
    return {
        "svix-id": identity,
        "svix-timestamp": sent_at,
        "svix-signature": f"v1,{base64.b64encode(digest).decode()}",
        "content-type": "application/json",
    }


def an_event(message: MessageId, type: str = "email.delivered", **more: Any) -> bytes:
    """An event as Resend posts it."""
    letter = {
        "email_id": "resend-1",
        "created_at": "2027-01-15T08:00:00.000Z",
        "from": "shop@example.com",
        "to": ["ana@example.com"],
        "subject": "Bom dia",
        "tags": {"carteiro_message": message, "carteiro_revision": "1"},
    }
    event = {"type": type, "created_at": "2027-01-15T08:00:01.000Z", "data": letter | more}
    return orjson.dumps(event)
