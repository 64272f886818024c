"""Handlers: one async function a type, found in a module of the user's; mistakes are reported when it starts."""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro import tickets as package
from carteiro.config import load
from carteiro.errors import ConfigError
from carteiro.policy.retry import PRESETS
from carteiro.tickets.consume.handlers import DEFAULT, Handler, Tickets, load_app, with_urls
from carteiro.tickets.ticket import Ticket


async def nothing(_: Ticket) -> None:
    """Do it."""


def test_a_handler_is_an_async_function_with_a_type() -> None:
    """It stays a function that can be called."""
    tickets = Tickets()
    decorated = tickets.handler(
        "BUILD", time_limit=timedelta(seconds=3), concurrency=2, retry="gateway"
    )(nothing)
    assert decorated is nothing
    assert list(tickets) == [Handler("BUILD", nothing, timedelta(seconds=3), 2, PRESETS["gateway"])]


def test_the_package_has_a_place_for_handlers_of_its_own() -> None:
    """So that a module needs one import and no variable."""
    assert package.handler == DEFAULT.handler


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (Handler("BUILD", nothing), "there is a handler for BUILD already"),
        (Handler("", nothing), "can be no type"),
        (Handler("a b", nothing), "can be no type"),
        (Handler("TEST", lambda _: None), "must be an async function"),  # type: ignore[arg-type, return-value]
        (Handler("TEST", nothing, time_limit=timedelta(0)), "time limit for TEST must be above 0"),
        (Handler("TEST", nothing, concurrency=0), "concurrency for TEST must be 1 or more"),
    ],
)
def test_mistakes_are_refused(handler: Handler, why: str) -> None:
    """When the module is loaded, not when a ticket comes."""
    tickets = Tickets()
    tickets.add(Handler("BUILD", nothing))
    with pytest.raises(ValueError, match=why):
        tickets.add(handler)


def test_type_has_an_address_or_a_function_not_both() -> None:
    """Which of the two would run it is nobody's guess."""
    tickets = with_urls(Tickets(), lambda _: nothing, {"BUILD": "http://127.0.0.1/build"})
    assert [each.type for each in tickets] == ["BUILD"]
    with pytest.raises(
        ConfigError, match=r"ticket_urls\.BUILD: there is a handler for BUILD already"
    ):
        with_urls(tickets, lambda _: nothing, {"BUILD": "http://127.0.0.1/build"})


def a_module(folder: Path, name: str, text: str) -> None:
    """A module of the user's."""
    (folder / f"{name}.py").write_text(text, "utf-8")


def test_handlers_are_found_in_a_module_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the name of a variable, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    a_module(
        tmp_path,
        "handlers_of_mine",
        "from carteiro.tickets import Tickets\n"
        "mine = Tickets()\n"
        "@mine.handler('BUILD')\n"
        "async def build(ticket): ...\n",
    )
    assert [each.type for each in load_app("handlers_of_mine:mine")] == ["BUILD"]


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("no_such_module", "there is no module no_such_module here"),
        ("empty_of_mine", "no handler is there"),
        ("empty_of_mine:nothing", "nothing is not a carteiro.tickets.Tickets; write"),
        ("full_of_mine:nothing", r"Tickets; did you mean full_of_mine:tickets\?"),
        ("./empty_of_mine", r"not a file; did you mean empty_of_mine\?"),
        ("empty_of_mine.py", r"not a file; did you mean empty_of_mine\?"),
        ("folder/empty_of_mine.py:mine", r"did you mean folder.empty_of_mine:mine\?"),
        ("../..", "not a file$"),
    ],
)
def test_a_module_without_handlers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: str, why: str
) -> None:
    """With what to do about it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    a_module(tmp_path, "empty_of_mine", "")
    a_module(tmp_path, "full_of_mine", "from carteiro.tickets import Tickets\ntickets = Tickets()")
    with pytest.raises(ConfigError, match=why):
        load_app(app)


def test_a_handler_may_name_a_preset_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked up when the handlers are loaded; an unknown one is reported, with all that there are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "carteiro.toml").write_text("[retry.presets.slow]\nattempts = 2\nbase_ms = 60000\n")
    text = "mine = Tickets()\n@mine.handler('BUILD', retry='slow')\nasync def build(ticket): ..."
    a_module(tmp_path, "slow_of_mine", f"from carteiro.tickets import Tickets\n{text}\n")

    with pytest.raises(ConfigError, match="retry of BUILD should be a policy, or one of gateway"):
        load_app("slow_of_mine:mine")
    [handler] = load_app("slow_of_mine:mine", load(environ={}).presets)

    assert handler.policy is not None
    assert (handler.policy.max_attempts, handler.policy.base) == (2, timedelta(minutes=1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "mine = Tickets()\n@mine.handler('BUILD')\nasync def build(ticket): ...",
            "did you mean {}:mine",
        ),
        (
            "mine = Tickets()\n@mine.handler('BUILD')\ndef build(ticket): ...",
            "must be an async function",
        ),
    ],
)
def test_common_mistake_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    """Not as a traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = f"mistake_{abs(hash(text))}"
    a_module(tmp_path, name, f"from carteiro.tickets import Tickets\n{text}\n")
    with pytest.raises(ConfigError, match=why.format(name)) as raised:
        load_app(name)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import a_library_that_is_not_there", "No module named 'a_library_that_is_not_there'"),
        ("def build(", "was never closed"),
        ("1 / 0", "division by zero"),
    ],
)
def test_an_error_inside_the_module_is_shown_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    """A sentence, then the lines of the user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = f"broken_{abs(hash(text))}"
    a_module(tmp_path, name, f"{text}\n")

    with pytest.raises(ConfigError) as raised:
        load_app(name)

    sentence, *place = str(raised.value).splitlines()
    assert sentence.startswith(f"--app {name}: it cannot be imported: ")
    assert why in sentence
    assert f'{name}.py", line 1' in "\n".join(place)
    assert "importlib" not in "\n".join(place)
