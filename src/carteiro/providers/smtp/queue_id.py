"""The relay's own id of a mail, from its last reply."""

import re

LONGEST_ID = 200  # characters

_CODES = re.compile(r"^2\d\d[ -]?(?:2\.\d{1,3}\.\d{1,3}\s*)?", re.MULTILINE)
_KNOWN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bqueued\s+as\s+([\w.:-]+)",  # Postfix
        r"\bid=([\w.:-]+)",  # Exim
        r"\bqueued\s+mail\s+for\s+delivery\s+([\w.:-]+)",
        r"^([\w.:-]+)\s+message\s+accepted\s+for\s+delivery",  # OpenSMTPD, Sendmail
        r"^ok:?\s+([0-9a-f-]{16,})$",  # Amazon SES
    )
)


def queue_id(reply: str) -> str:
    """The relay's own id of the mail if the form of the reply is known, else the whole reply."""
    text = " ".join(_CODES.sub("", reply).split())
    for pattern in _KNOWN:
        if found := pattern.search(text):
            return found[1].rstrip(".")[:LONGEST_ID]
    return text[:LONGEST_ID] or reply[:LONGEST_ID]
