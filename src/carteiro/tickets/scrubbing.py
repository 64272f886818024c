"""Take what must stay secret out of error texts, before they enter a topic, a document, an alert or a line.

Pure. Every pattern looks a bounded way ahead or swallows what it looked at, so that no text makes it slow. It
rather takes too much than too little: whoever needs the rest finds it where the error was raised.
"""

import re

_GONE = "***"
_WINDOW = 8192  # characters; no secret that is known here is longer

_QUOTED = r"b?(?P<quote>\\*[\"'])(?:(?!(?P=quote))(?:\\.|.))*"
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
    (re.compile(pattern, re.IGNORECASE if insensitive else 0), put)
    for pattern, insensitive, put in (
        (
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z0-9 ]*-----|\Z)",
            False,
            _GONE,
        ),
        (rf"({_HEADERS})([\\\"']*\s*[:=]\s*)(?:{_QUOTED}|[^\r\n]+)", True, rf"\1\2{_GONE}"),
        # A password may hold what should have been escaped; then it ends at the last @ of the word.
        (
            r"(://)(?:[^\s/?#\"'<>]{0,512}|[^\s/?#:@\"'<>]{0,256}:[^\s\"'<>]{0,512})@",
            False,
            rf"\1{_GONE}@",
        ),
        (
            rf"((?:{_NAMED})[\w.-]{{0,40}})([\\\"']*\s*[:=]\s*)(?:{_QUOTED}|[^\s,;&\"'<>)}}\]]+)",
            True,
            rf"\1\2{_GONE}",
        ),
        (rf"(--[\w-]{{0,40}}(?:{_NAMED})\s+)[^\s]+", True, rf"\1{_GONE}"),
        (
            r"\b(bearer|basic)\s+(?!auth|cred|realm|scheme|token)[\w.~+/-]{8,}=*",
            True,
            rf"\1 {_GONE}",
        ),
        (r"\beyJ[\w-]{8,}(?:\.[\w-]*){1,4}", False, _GONE),
        (rf"(?<![A-Za-z0-9])(?:{_ISSUED})", False, _GONE),
        (r"(hooks\.slack\.com/)[\w/-]+", False, rf"\1{_GONE}"),
        # Keys of AWS have no mark of their own, but a length, and letters of all kinds: no digest has.
        (
            r"(?<![\w/+=])(?=[a-z0-9/+]*[A-Z])(?=[A-Z0-9/+]*[a-z])(?=[A-Za-z/+]*[0-9])[A-Za-z0-9/+]{40}(?![\w/+=])",
            False,
            _GONE,
        ),
    )
)


def scrub(text: str) -> str:
    """The text without passwords, tokens and keys, as far as they can be told; anything in it can be encoded."""
    scrubbed = text.encode("utf-8", "replace").decode()
    for pattern, put in _PATTERNS:
        scrubbed = pattern.sub(put, scrubbed)
    return scrubbed


def scrubbed_start(text: str, most_bytes: int) -> str:
    """The start of a text, scrubbed, of so many bytes at most; a long text costs no more than its start."""
    room = 4 * most_bytes + _WINDOW
    # What is cut off might be what tells a secret, so the last that is left of a long text is not shown.
    scrubbed = scrub(text) if len(text) <= room else scrub(text[:room])[:-_WINDOW]
    return cut(scrubbed, most_bytes)


def cut(text: str, most_bytes: int) -> str:
    """The start of a text, in whole characters."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")
