"""The parts of the console, in the order of its menu. One that a viewer may not see, or without a page, is left out."""

from typing import Final

from carteiro.model import value


@value
class Place:
    """An entry of the menu: its word in ``shell``, its path, and its picture in ``icons.html``."""

    name: str
    path: str


PLACES: Final = (
    Place("overview", ""),
    Place("messages", "messages"),
    Place("dead_letters", "dead-letters"),
    Place("redrives", "redrives"),
    Place("tenants", "tenants"),
    Place("providers", "providers"),
    Place("templates", "templates"),
    Place("suppressions", "suppressions"),
    Place("alerts", "alerts"),
    Place("audit", "audit"),
    Place("inbox", "inbox"),
    Place("settings", "settings"),
)
