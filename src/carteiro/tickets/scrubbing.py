"""Take what must stay secret out of error texts, before they enter a topic, a document, an alert or a line.

Pure. Every pattern looks a bounded way ahead or swallows what it looked at, so that no text makes it slow. It
rather takes too much than too little: the rest is where the error was raised.
"""

import re
from functools import lru_cache

_GONE = "***"
_WINDOW = 1024  # characters; no pattern needs to see more of a secret to know it

_QUOTED = r"b?(?P<quote>\\*[\"'])(?:(?!(?P=quote))(?:\\.|.))*"
_SAYS = r"[\\\"']*\s*[:=]\s*|\\*[\"']\s*,\s*(?=b?\\*[\"'])"
_WORD = r"(?:[^\s/?#@\"'<>]{0,256}+@)+"
_NAMED = (
    r"pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|credential"
    r"|signature|session[_-]?id|(?<![A-Za-z])(?:pwd|sig|sid|jwt)(?![A-Za-z])"
)
_HEADERS = r"(?:proxy-)?authorization|(?:set-)?cookie|x-(?:api|auth|amz-security)-(?:key|token)"
_ISSUED = (
    r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA)[A-Z0-9]{12,}"  # AWS
    r"|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|npm_[A-Za-z0-9]{20,}"
    r"|xox[a-z]-[\w-]{8,}|[prs]k_(?:live|test)_\w{8,}|whsec_[\w+/=]{8,}|sk-[\w-]{16,}|re_\w{16,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{8,}|SG\.[\w-]{8,}\.[\w-]{8,}|hv[bs]\.[\w-]{16,}|c[ak]_[\w-]{32}"
)

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z0-9 ]*-----|\Z)", _GONE),
        (rf"((?i:{_HEADERS}))({_SAYS})(?:{_QUOTED}|[^\r\n]+)", rf"\1\2{_GONE}"),
        # A password may hold what should have been escaped; then it ends at the last @ of the word.
        (
            rf"(://)(?:{_WORD}|[^\s/?#:@\"'<>]{{0,256}}+:[^\s\"'<>@]{{0,256}}+@(?:{_WORD})?)",
            rf"\1{_GONE}@",
        ),
        (
            rf"((?i:{_NAMED})[\w.-]{{0,40}}+)({_SAYS})(?:{_QUOTED}|[^\s,;&\"'<>)}}\]]+)",
            rf"\1\2{_GONE}",
        ),
        (rf"((?<![\w-])--(?i:[a-z-]{{0,40}}?(?:{_NAMED}))\s+)\S+", rf"\1{_GONE}"),
        (
            r"\b((?i:bearer|basic)\s+)(?!(?i:auth|cred|realm|scheme|token))[\w.~+/-]{8,}=*",
            rf"\1{_GONE}",
        ),
        (r"\beyJ[\w-]{8,}(?:\.[\w-]*){1,4}", _GONE),
        (rf"(?<![A-Za-z0-9])(?:{_ISSUED})", _GONE),
        (r"(hooks\.slack\.com/)[\w/-]+", rf"\1{_GONE}"),
        # Keys of AWS have no mark of their own, but a length, and letters of all kinds: no digest has.
        (
            r"(?<![\w/+=])(?=[a-z0-9/+]*[A-Z])(?=[A-Z0-9/+]*[a-z])(?=[A-Za-z/+]*[0-9])[A-Za-z0-9/+]{40}(?![\w/+=])",
            _GONE,
        ),
    )
)


def scrub(text: str) -> str:
    """Return the text without passwords, tokens and keys, as far as they can be known; all of it can be encoded."""
    scrubbed = text.encode("utf-8", "replace").decode()
    for pattern, put in _PATTERNS:
        scrubbed = pattern.sub(put, scrubbed)
    return scrubbed


def scrubbed_start(text: str, most_bytes: int) -> str:
    """Return the start of a text, scrubbed and bounded in bytes; a long text costs no more than its start."""
    room = 2 * most_bytes + _WINDOW
    return _scrubbed_start(text[:room], most_bytes, is_cut=len(text) > room)


# Tickets that fail together fail of the same, and this costs more than all the rest.
@lru_cache(256)
def _scrubbed_start(start: str, most_bytes: int, *, is_cut: bool) -> str:
    # What is cut off might be what tells a secret, so the last that is left of a long text is not shown.
    return cut(scrub(start)[:-_WINDOW] if is_cut else scrub(start), most_bytes)


def cut(text: str, most_bytes: int) -> str:
    """The start of a text, in whole characters."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")
