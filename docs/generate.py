"""Write the reference pages that come from code; with ``--check`` only say whether they are up to date."""

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from carteiro import config
from carteiro.model import FINISHED, TRANSITIONS, State

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by `make docs`; change the code it comes from. -->\n"

_COMMENTED = re.compile(r"((?:^#.*\n)+)(\w+) = ", re.MULTILINE)
_SECTION = re.compile(r"^\[(\w+)\]\n", re.MULTILINE)


# --- states -----------------------------------------------------------------------------------


def states_page() -> str:
    """Every state, and where a message may go from it."""
    rows = "".join(
        f"| {state} | {_targets(state)} | {'yes' if state in FINISHED else ''} |\n"
        for state in State
    )
    arrows = "".join(
        f"    {state} --> {target}\n" for state in State for target in _sorted(TRANSITIONS[state])
    )
    ends = "".join(f"    {state} --> [*]\n" for state in State if state in FINISHED)
    return (
        f"# States of a message\n\n{NOTE}\n"
        "A message moves along these arrows and no others; each move and its event are written in\n"
        "one transaction. What a provider says later is an event, not a state.\n\n"
        "| state | may become | finished |\n| --- | --- | --- |\n"
        f"{rows}\n"
        "```mermaid\nstateDiagram-v2\n"
        f"    [*] --> {State.ENQUEUED}\n{arrows}{ends}```\n"
    )


def _targets(state: State) -> str:
    return ", ".join(_sorted(TRANSITIONS[state]))


def _sorted(states: frozenset[State]) -> list[State]:
    order = list(State)
    return sorted(states, key=order.index)


# --- settings ---------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting with its default, what is allowed, its variable and its reason."""
    sections = "".join(_section(name, text) for name, text in _sections(config.default_text()))
    return (
        f"# Settings\n\n{NOTE}\n"
        "Later places win: the default file, then `carteiro.toml` (in the current directory, or\n"
        f"named by `--config` or `{config.ENV_FILE}`), then environment variables, then flags.\n"
        "`carteiro config show` prints each value and where it came from. Unknown keys are errors.\n"
        "Durations are whole milliseconds.\n"
        f"{sections}"
    )


def _sections(text: str) -> Iterator[tuple[str, str]]:
    top, *rest = _SECTION.split(text)
    yield "", top
    yield from zip(rest[::2], rest[1::2], strict=True)


def _section(section: str, text: str) -> str:
    defaults = tomllib.loads(text)
    blocks = "".join(
        _setting(f"{section}.{name}" if section else name, defaults[name], comment)
        for comment, name in _COMMENTED.findall(text)
    )
    return f"\n## {f'[{section}]' if section else 'Top level'}\n{blocks}"


def _setting(key: str, default: object, comment: str) -> str:
    reason = " ".join(line.removeprefix("#").strip() for line in comment.splitlines())
    return (
        f"\n### `{key}`\n\n{reason}\n\n"
        f"Default `{_as_toml(default)}`{_choices(key)}; variable `{config.env_name(key)}`.\n"
    )


def _as_toml(default: object) -> str:
    if isinstance(default, str):
        return f'"{default}"'
    return str(default).lower() if isinstance(default, bool) else str(default)


def _choices(key: str) -> str:
    """The values of a setting that offers a choice; others say in their reason what they take."""
    section, _, name = key.rpartition(".")
    model: Any = config.Settings.model_fields[section].annotation if section else config.Settings
    field = getattr(model, "model_fields", {}).get(name)
    arguments = get_args(field.annotation) if field else ()
    allowed = [f'`"{each}"`' for each in arguments if isinstance(each, str)]
    return f"; one of {', '.join(allowed)}" if allowed else ""


# --- writing ----------------------------------------------------------------------------------

PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "states.md": states_page,
}


def outdated() -> list[str]:
    """The pages that differ from what the code says."""
    return [name for name, page in PAGES.items() if _written(name) != page()]


def _written(name: str) -> str:
    path = REFERENCE / name
    return path.read_text("utf-8") if path.exists() else ""


def main(arguments: list[str]) -> int:
    """Write what is outdated, or with ``--check`` only name it and fail."""
    names = outdated()
    if "--check" in arguments:
        for name in names:
            print(f"outdated: docs/reference/{name}; run make docs")
        return len(names)
    for name in names:
        (REFERENCE / name).write_text(PAGES[name](), "utf-8")
        print(f"written: docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
