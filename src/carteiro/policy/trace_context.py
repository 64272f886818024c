"""Trace contexts, as W3C defines them: how they come, and how they are kept in the content of a message.

The content of a message is read for each attempt anyway. One that has a context ends with it, as a field that no e-mail
and no task can have themselves; one without a context is stored as it is.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b

import orjson

from carteiro.model import value

TRACE = "trace-context"  # no field of an e-mail, and no name of an argument in Python
_MARK = f'"{TRACE}":'
_PARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_OWNER = r"[a-z0-9][a-z0-9_*/-]{0,240}(?:@[a-z0-9_*/-]{1,14})?"
_MEMBER = re.compile(rf"(?:{_OWNER}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{1,256}})?")
_LONGEST_STATE = 512  # characters; W3C asks to pass on at least 512
_MOST_MEMBERS = 32
# Characters at the end of a content: a state of backslashes is twice as long in JSON.
_LONGEST = 2 * _LONGEST_STATE + 100
_SAMPLED = 1
_TRACE_BYTES, _SPAN_BYTES = 16, 8


@value
class TraceContext:
    """A span of a trace, to be continued; ids in hexadecimal."""

    trace_id: str
    span_id: str
    is_sampled: bool
    state: str = ""

    @property
    def parent(self) -> str:
        """The header ``traceparent``."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


def read_trace(parent: object, state: object = None) -> TraceContext | None:
    """The context of the headers ``traceparent`` and ``tracestate``; None if the first one is not valid.

    A state that is not valid or too long is left out.
    """
    found = _PARENT.fullmatch(parent.strip(" \t")) if isinstance(parent, str) else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if more and version == "00":
        return None
    is_sampled = bool(int(flags, 16) & _SAMPLED)
    return TraceContext(trace_id, span_id, is_sampled, _read_state(state))


def _read_state(state: object) -> str:
    if not isinstance(state, str) or not 0 < len(state) <= _LONGEST_STATE:
        return ""
    members = [each.strip(" \t") for each in state.split(",")]
    is_valid = len(members) <= _MOST_MEMBERS and all(map(_MEMBER.fullmatch, members))
    return state if is_valid else ""


def read_headers(headers: Iterable[tuple[str, bytes | None]]) -> TraceContext | None:
    """The context in headers of HTTP or Kafka, their names in any case; None if there is none, or several."""
    parents, states = [], []
    for name, each in headers:
        if (small := name.lower()) == "traceparent":
            parents.append(each)
        elif small == "tracestate":
            states.append((each or b"").decode("latin-1"))
    if len(parents) != 1:
        return None
    return read_trace((parents[0] or b"").decode("latin-1"), ",".join(states))


# --- in the content of a message --------------------------------------------------------------


def trace_text(trace: TraceContext) -> str:
    """A context as a field of a content."""
    return f"{trace.parent} {trace.state}" if trace.state else trace.parent


def trace_of_text(text: str) -> TraceContext | None:
    """The context of such a field."""
    parent, _, state = text.partition(" ")
    return read_trace(parent, state)


def with_trace(content: str, trace: TraceContext) -> str:
    """The content, an object of JSON, with a context at its end."""
    field = f"{_MARK}{orjson.dumps(trace_text(trace)).decode()}}}"
    return f"{content[:-1]}{'' if content == '{}' else ','}{field}"


def trace_in(content: str | None) -> TraceContext | None:
    """The context at the end of a content, without parsing the rest of it."""
    if content is None:
        return None
    at = content.rfind(_MARK, max(0, len(content) - _LONGEST))
    if at < 1 or content[at - 1] not in "{,":
        return None
    try:
        text = orjson.loads(content[at + len(_MARK) : -1])
    except orjson.JSONDecodeError:  # inside of another object
        return None
    return trace_of_text(text) if isinstance(text, str) else None


# --- ids that need not be kept ------------------------------------------------------------------


def trace_id_of(identity: str) -> str:
    """The trace of a message or ticket that came without one: the same for all its attempts."""
    return blake2b(identity.encode(), digest_size=_TRACE_BYTES).hexdigest()


def span_id_of(identity: str, attempt: int) -> str:
    """The span of an attempt: the next one refers to it, in whichever process that is."""
    return blake2b(f"{identity} {attempt}".encode(), digest_size=_SPAN_BYTES).hexdigest()
