"""Links that unsubscribe with one click (RFC 8058): sealed, so that nobody can guess, change or read one. Pure.

A link holds all that is needed to follow it, so it works after its message was pruned. It has the key of an address
on the suppression list, not the address itself. The same message and address have the same link each time.
"""

import base64
import binascii
import hmac
from dataclasses import field
from hashlib import sha256, shake_256
from typing import Final
from uuid import UUID

from carteiro.model import MessageId, TenantId, UnsubscribeLink, value
from carteiro.policy.suppression import key_of
from carteiro.policy.webhooks import secret_of

PATH: Final = "/unsubscribe/"
LONGEST_URL: Final = 500  # with the longest token, the header fits into one line of a mail
LONGEST_TENANT: Final = 256  # bytes
SHORTEST_SECRET: Final = 24  # bytes
_TAG, _MESSAGE, _KEY = 16, 16, 32
_LEAST = _TAG + _MESSAGE + _KEY
_LONGEST_TOKEN = -(-(_LEAST + LONGEST_TENANT) * 4 // 3)


@value
class OneClick:
    """The public address of this installation, and its secrets: the first one seals, all of them open."""

    url: str
    secrets: tuple[bytes, ...] = field(repr=False)

    def url_for(self, address: str, *, tenant: TenantId, message: MessageId) -> str:
        """The link of a message to an address."""
        key = bytes.fromhex(key_of(tenant, address))
        said = UUID(message).bytes + key + tenant.encode()
        return f"{self.url}{PATH}{_sealed(said, self.secrets[0])}"

    def opened(self, token: str) -> UnsubscribeLink | None:
        """The contents of the last part of a link; None: it is not one of ours."""
        said = None
        for secret in self.secrets:  # all of them, for constant time
            said = _opened(token, secret) or said
        if said is None:
            return None
        rest = said[_MESSAGE:]
        message = MessageId(str(UUID(bytes=said[:_MESSAGE])))
        return UnsubscribeLink(TenantId(rest[_KEY:].decode()), message, rest[:_KEY].hex())


def one_click(url: str, secrets: str) -> OneClick | None:
    """The offer of an installation; ``secrets`` are separated by spaces. None: they are not valid."""
    read = tuple(secret_of(each) or b"" for each in secrets.split())
    if not read or min(map(len, read)) < SHORTEST_SECRET:
        return None
    return OneClick(url, read)


def _sealed(said: bytes, secret: bytes) -> str:
    """The text, hidden behind a pad that follows from its signature; both need the secret."""
    tag = hmac.digest(secret, said, sha256)[:_TAG]
    return base64.urlsafe_b64encode(tag + _padded(said, secret, tag)).rstrip(b"=").decode()


def _opened(token: str, secret: bytes) -> bytes | None:
    if len(token) > _LONGEST_TOKEN:
        return None
    try:
        sealed = base64.b64decode(f"{token}{'=' * (-len(token) % 4)}", b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    tag, said = sealed[:_TAG], _padded(sealed[_TAG:], secret, sealed[:_TAG])
    is_ours = hmac.compare_digest(tag, hmac.digest(secret, said, sha256)[:_TAG])
    return said if is_ours and len(sealed) > _LEAST else None


def _padded(text: bytes, secret: bytes, tag: bytes) -> bytes:
    pad = shake_256(secret + tag).digest(len(text))
    return bytes(each ^ other for each, other in zip(text, pad, strict=True))
