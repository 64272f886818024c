"""Our ids as tags, which providers return in their events: ASCII letters, digits, dashes and underscores. Pure."""

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
    """Encode the text as a tag value: stable and unique.

    Other characters become an underscore and two hex digits a byte; a text that is too long ends in its hash.
    """
    written = _OTHER.sub(lambda it: "".join(f"_{byte:02x}" for byte in it[0].encode()), text)
    if len(written) <= _LONGEST:
        return written
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{written[: _LONGEST - len(digest) - 2]}__{digest}"
