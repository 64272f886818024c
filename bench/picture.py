"""Draw the last kept tables as one picture: `bench/results/speed.svg`, ours next to the peers, jobs per second.

python bench/picture.py
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from results import RESULTS

PICTURE = RESULTS / "speed.svg"
_WIDTH, _LEFT, _RIGHT = 760, 250, 70
_ROW, _HEAD, _GAP = 22, 30, 14
# The ground follows the reader's setting together with the text: a page of the other colour does not hide it.
_STYLE = """<style>
text { fill: #2c2c29 } .ground { fill: #ffffff } .ours { fill: #1f7a5c } .peer { fill: #b9b4a7 }
@media (prefers-color-scheme: dark) {
text { fill: #e6e6e1 } .ground { fill: #1b1c1e } .ours { fill: #3fb68b } .peer { fill: #6b6a64 }
}
</style>"""


_CAPTION = "Per second, longer is better; one worker process each, the same machine and run"


class Bar(NamedTuple):
    """One bar: a row of a table under a title."""

    label: str
    title: str  # how the line above the table begins; {} stands for a number
    row: str  # how the row begins


_DRAIN = "Drain: one worker process"
_POSTGRES = "Postgres, drain of"
_POSTGRES_MAILS = "Postgres, {} e-mails"
_REDIS = "Redis queue, Postgres ledger: drain of"
_MAILS = "Redis queue, Postgres ledger: {} e-mails"
_HTTP = "HTTP API"
_SMTP = "Through smtp to a raw sink"
GROUPS: Mapping[str, Sequence[Bar]] = {
    "No-op tasks on SQLite": (
        Bar("Carteiro", _DRAIN, "no-op task"),
        Bar("Huey (no acknowledgement)", _DRAIN, "Huey"),
    ),
    "No-op tasks on Postgres": (
        Bar("Carteiro", _POSTGRES, "Carteiro, 1 worker process"),
        Bar("graphile-worker, tuned", _POSTGRES, "graphile-worker"),
        Bar("PgQueuer", _POSTGRES, "PgQueuer"),
        Bar("Procrastinate", _POSTGRES, "Procrastinate"),
    ),
    "No-op tasks on Redis; Carteiro with its ledger on Postgres": (
        Bar("Carteiro", _REDIS, "Carteiro"),
        Bar("BullMQ", _REDIS, "BullMQ"),
        Bar("Dramatiq", _REDIS, "Dramatiq"),
        Bar("taskiq", _REDIS, "taskiq"),
    ),
    "E-mails with all events on SQLite; the peer runs no-op tasks": (
        Bar("Carteiro", _DRAIN, "whole e-mail pipeline"),
        Bar("Huey, no-op tasks", _DRAIN, "Huey"),
    ),
    "E-mails with all events on Postgres; the peer runs no-op tasks": (
        Bar("Carteiro", _POSTGRES_MAILS, "Carteiro"),
        Bar("PgQueuer, no-op tasks", _POSTGRES_MAILS, "PgQueuer"),
    ),
    "E-mails with all events, Redis and Postgres": (
        Bar("Carteiro", _MAILS, "Carteiro"),
        Bar("BullMQ with outbox, log, events", _MAILS, "BullMQ"),
    ),
    "E-mails through SMTP, from accept to sent": (
        Bar("Carteiro", _SMTP, "accept to sent"),
        Bar("aiosmtplib alone", _SMTP, "aiosmtplib"),
    ),
    "E-mails accepted over HTTP, SQLite": (
        Bar("Carteiro, one a request", _HTTP, "POST /v1/email/send"),
        Bar("Carteiro, batches of 100", _HTTP, "POST /v1/email/batch"),
        Bar("FastAPI, storing nothing", _HTTP, "FastAPI"),
    ),
}


def tables(text: str) -> Iterator[tuple[str, dict[str, float]]]:
    """The tables of a run: the line above each, and the rate of each row."""
    title, rates = "", {}
    for line in [*text.splitlines(), ""]:
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) > 1 and re.fullmatch(r"[\d,]+", cells[1]):
            rates[cells[0]] = float(cells[1].replace(",", ""))
        elif line and not line.startswith("|"):
            title = re.sub(r"\d[\d,]*", "{}", line)
        elif not line and rates:
            yield title, rates
            rates = {}


def drawn(known: Mapping[str, Mapping[str, float]]) -> str:
    """The picture; groups without a figure of ours are left out."""
    parts: list[str] = [_text(_GAP, _GAP + 16, _CAPTION)]
    top = _GAP + _HEAD
    for name, bars in GROUPS.items():
        found = [(bar.label, rate) for bar in bars if (rate := _rate(known, bar)) is not None]
        if not found or found[0][0] != bars[0].label:
            continue
        most = max(rate for _, rate in found)
        parts.append(_text(_GAP, top + 16, name, "bold"))
        top += _HEAD
        for label, rate in found:
            parts += _bar(top, label, rate, rate / most)
            top += _ROW
        top += _GAP
    size = f'width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}"'
    style = 'font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} {style}>'
    title = "<title>Jobs per second, Carteiro and its peers on the same machine</title>"
    ground = f'<rect class="ground" width="{_WIDTH}" height="{top}"/>'
    return "\n".join([head, title, _STYLE, ground, *parts, "</svg>\n"])


def _rate(known: Mapping[str, Mapping[str, float]], bar: Bar) -> float | None:
    rows = next((rows for title, rows in known.items() if title.startswith(bar.title)), {})
    return next((rate for name, rate in rows.items() if name.startswith(bar.row)), None)


def _bar(top: int, label: str, rate: float, share: float) -> list[str]:
    length = max(2, round(share * (_WIDTH - _LEFT - _RIGHT)))
    whose = "ours" if label.startswith("Carteiro") else "peer"
    size = f'width="{length}" height="{_ROW - 6}"'
    return [
        _text(_LEFT - 8, top + 14, label, anchor="end"),
        f'<rect class="{whose}" x="{_LEFT}" y="{top + 2}" {size}/>',
        _text(_LEFT + length + 6, top + 14, f"{rate:,.0f}"),
    ]


def _text(x: int, y: int, text: str, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x}" y="{y}" font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def main() -> None:
    """Read all kept tables, newer ones over older ones, and draw."""
    known: dict[str, dict[str, float]] = {}
    for text in sorted(path.read_text("utf-8") for path in RESULTS.glob("*.md")):
        known |= tables(text)  # each begins with its date and time
    PICTURE.write_text(drawn(known), "utf-8")
    print(f"written: {PICTURE.relative_to(RESULTS.parent.parent)}")


if __name__ == "__main__":
    main()
