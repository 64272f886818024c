"""Signatures of webhooks, as in the Standard Webhooks scheme: for those that are sent, and those that are heard."""

import base64
import binascii
import hmac
from hashlib import sha256
from typing import Final

VERSION: Final = "v1"
_PREFIX = "whsec_"


def secret_of(text: str) -> bytes | None:
    """The key that a secret stands for; None: it is not one."""
    try:
        return base64.b64decode(text.removeprefix(_PREFIX), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def signature(secret: bytes, identity: str, sent_at: str, body: bytes) -> str:
    """The signature of a body that is sent under an id at a time, in seconds since 1970."""
    signed = b".".join((identity.encode("latin-1"), sent_at.encode("latin-1"), body))
    return base64.b64encode(hmac.digest(secret, signed, sha256)).decode()
