"""Editing a dead letter in a form: its fields as text, what was changed, and the difference. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from carteiro.console.comparing import differing
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import EMAIL, StoredMessage, value
from carteiro.policy.trace_context import TRACE

_TEXTS: Final = ("to", "from", "replyTo", "subject", "text", "html")
_LISTS: Final = ("cc", "bcc")
_LONG: Final = {"text", "html", "arguments"}
_MOST_COMPARED: Final = 100_000  # characters, and lines: beyond them only that it changed
_MOST_COMPARED_LINES: Final = 1000
# Of JSON: indented, deep nests take hundreds of times their size.
_MOST_INDENTED: Final = 16 * 1024


@value
class EditField:
    """A field of a form."""

    name: str
    text: str
    is_long: bool


@value
class Difference:
    """A change of a field: lines with their sign, `` ``, ``-`` or ``+``; none: too long to compare."""

    name: str
    lines: tuple[tuple[str, str], ...]


def editable(message: StoredMessage, given: Mapping[str, str] | None = None) -> list[EditField]:
    """The fields of a message as texts; those in ``given`` as given."""
    stored = _texts(message)
    texts = {name: _plain((given or stored).get(name, text)) for name, text in stored.items()}
    return [EditField(name, text, name in _LONG) for name, text in texts.items()]


def changes_in(message: StoredMessage, given: Mapping[str, str]) -> dict[str, Any]:
    """The changes of a form, as the API has them; None removes a field."""
    before = {name: _plain(text) for name, text in _texts(message).items()}
    changed = {
        name: _plain(given[name])
        for name, text in before.items()
        if name in given and _plain(given[name]) != text
    }
    if message.kind != EMAIL:
        return _arguments(changed.get("arguments", "{}"))
    return {name: _value(name, text) for name, text in changed.items()}


def differences(before: Sequence[EditField], after: Sequence[EditField]) -> list[Difference]:
    """The changes, field by field."""
    return [
        Difference(old.name, tuple(_compared(old.text, new.text)))
        for old, new in zip(before, after, strict=True)
        if old.text != new.text
    ]


def _texts(message: StoredMessage) -> dict[str, str]:
    content = orjson.loads(message.content or "{}")
    if message.kind != EMAIL:
        content.pop(TRACE, None)  # not an argument: it stays as it is
        is_short = len(message.content or "") <= _MOST_INDENTED
        option = orjson.OPT_INDENT_2 if is_short else None
        return {"arguments": orjson.dumps(content, option=option).decode()}
    texts = {name: content.get(name) or "" for name in _TEXTS}
    return texts | {name: ", ".join(content.get(name) or ()) for name in _LISTS}


def _plain(text: str) -> str:
    """With line breaks as everybody but a form writes them."""
    return text.replace("\r\n", "\n").strip("\n")


def _value(name: str, text: str) -> Any:  # noqa: ANN401 - a text, a list or None
    if name in _LISTS:
        return [each.strip() for each in text.split(",") if each.strip()] or None
    return (text if name in _LONG else text.strip()) or None


def _arguments(text: str) -> dict[str, Any]:
    try:
        read = orjson.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise InvalidMessage([FieldError("arguments", "must be an object in JSON")])
    return read


def _compared(before: str, after: str) -> Iterator[tuple[str, str]]:
    old, new = before.splitlines(), after.splitlines()
    is_long = len(before) + len(after) > _MOST_COMPARED
    if is_long or len(old) + len(new) > _MOST_COMPARED_LINES:
        return
    yield from differing(old, new)
