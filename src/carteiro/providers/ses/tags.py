"""Our ids as SES' events bring them back: tags that may hold ASCII letters, digits, dashes and underscores."""

import hashlib
import re

from carteiro.ports.provider import Parcel

MESSAGE, TENANT, REVISION, ATTEMPT = (
    "carteiro-message",
    "carteiro-tenant",
    "carteiro-revision",
    "carteiro-attempt",
)
_LONGEST = 256
_OTHER = re.compile(r"[^A-Za-z0-9-]")


def tags_of(parcel: Parcel) -> list[dict[str, str]]:
    """What a mail is called by, as the send call takes it."""
    told = {
        MESSAGE: parcel.message,
        TENANT: parcel.tenant,
        REVISION: str(parcel.revision),
        ATTEMPT: str(parcel.attempt),
    }
    return [{"Name": name, "Value": tag_value(text)} for name, text in told.items()]


def tag_value(text: str) -> str:
    """The text as a tag holds it: the same each time, and no other text's.

    What is not allowed is an underscore and two hex digits a byte; what is too long ends in its hash.
    """
    written = _OTHER.sub(_hex, text)
    if len(written) <= _LONGEST:
        return written
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{written[: _LONGEST - len(digest) - 2]}__{digest}"


def _hex(character: re.Match[str]) -> str:
    return "".join(f"_{byte:02x}" for byte in character[0].encode())
