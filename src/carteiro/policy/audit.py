"""Contents of audit rows: ids, field names and settings; never content, addresses or secrets. Pure."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from pydantic.alias_generators import to_camel

from carteiro.model import Tenant

LONGEST: Final = 255
MOST_IN_A_LIST: Final = 20
HIDDEN: Final = "hidden-"  # beginning of what replaces a private name
# An address, a URL with credentials, or a key or token of ours; also in the middle of a text.
_PRIVATE = re.compile(r"\S@\S|c[ak]_[\w-]{6}")
# People's names and addresses: rows say that they changed, not to what.
_NAMED_ONLY = {"name", "default_from", "contact"}
_SWITCHES = {"paused": ("resume", "pause"), "disabled": ("enable", "disable")}


def harmless(text: str) -> str:
    """A name that users chose, fit for a row: printable, short, and hashed if it may be an address or a secret."""
    if _PRIVATE.search(text):
        return (
            f"{HIDDEN}{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
        )
    start = text[: LONGEST + 1]
    if not start.isprintable():
        start = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in start)
    return start if len(start) <= LONGEST else f"{start[: LONGEST - 1]}…"


def harmless_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their names in JSON, each value fit for a row."""
    return {to_camel(name): _harmless(each) for name, each in fields.items()}


def _harmless(given: object) -> Any:  # noqa: ANN401 - any JSON
    match given:
        case None | bool() | int() | float() | datetime():
            return given
        case list() | tuple():
            return [_harmless(each) for each in given[:MOST_IN_A_LIST]]
        case dict():
            return harmless_fields(given)
        case _:
            return harmless(str(given))


def tenant_change(
    before: Tenant | None, after: Tenant
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The action that changes a tenant, as the command line calls it; and the changed fields, before and after."""
    old, new = asdict(before or Tenant(after.id)), asdict(after)
    changed = [name for name in new if new[name] != old[name]]
    if before is None:
        return "add", {}, _shown(new, changed)
    action = "set"
    if len(changed) == 1 and changed[0] in _SWITCHES:
        action = _SWITCHES[changed[0]][new[changed[0]]]
    return action, _shown(old, changed), _shown(new, changed)


def _shown(fields: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    return {
        name: ("set" if fields[name] else "not set") if name in _NAMED_ONLY else fields[name]
        for name in names
    }
