"""The relay's own id of a mail, from its last reply."""

import re

LONGEST_ID = 200  # characters

_CODES = re.compile(r"^2\d\d[ -]?(?:2\.\d{1,3}\.\d{1,3}\s*)?", re.MULTILINE)
_ID = r"([\w.:-]*[\w:-])"
_USUAL = re.compile(f" queued as {_ID}")  # Postfix: found in the reply as it is
_KNOWN = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bqueued\s+as\s+{_ID}",  # Postfix
        rf"\bid={_ID}",  # Exim
        rf"\bqueued\s+mail\s+for\s+delivery\s+{_ID}",
        rf"^{_ID}\.*\s+message\s+accepted\s+for\s+delivery",  # OpenSMTPD, Sendmail
        r"^ok:?\s+([0-9a-f-]{16,})$",  # Amazon SES
    )
)


def queue_id(reply: str) -> str:
    """The relay's own id of the mail if the form of the reply is known, else the whole reply."""
    if found := _USUAL.search(reply):
        return found[1][:LONGEST_ID]
    text = " ".join(_CODES.sub("", reply).split())
    for pattern in _KNOWN:
        if found := pattern.search(text):
            return found[1][:LONGEST_ID]
    return text[:LONGEST_ID] or reply[:LONGEST_ID]
