"""Our ids as providers' events bring them back: tags, of ASCII letters, digits, dashes and underscores. Pure."""

import hashlib
import re

MESSAGE = "carteiro-message"
TENANT = "carteiro-tenant"
REVISION = "carteiro-revision"
ATTEMPT = "carteiro-attempt"
COPIES = "carteiro-copies"

_LONGEST = 256
_OTHER = re.compile(r"[^A-Za-z0-9-]")


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
