"""Every promise of a port has its module here, and every module here tests a promise."""

import inspect
import re
from pathlib import Path

import pytest

from carteiro import ports

HERE = Path(__file__).parent
# A transaction of the caller's own, and a queue that is rebuilt: each is of one store, and tested there.
_OF_ONE_STORE = {ports.Joining, ports.KeptQueue}
PROTOCOLS = [
    each
    for each in vars(ports).values()
    if getattr(each, "_is_protocol", False) and each not in _OF_ONE_STORE
]
_FOLDER = re.compile(r"``tests/contract/(\w+)``")
_PROMISE = re.compile(r"^([a-z]+) {2,}\S", re.MULTILINE)  # one word, a gap, its meaning


def _promises() -> dict[str, list[str]]:
    """The promises of each port, by the folder that it names."""
    texts = [inspect.cleandoc(each.__doc__ or "") for each in PROTOCOLS]
    return {match[1]: _PROMISE.findall(text) for text in texts if (match := _FOLDER.search(text))}


def _modules(folder: str) -> set[str]:
    return {path.stem.removeprefix("test_") for path in (HERE / folder).glob("test_*.py")}


PROMISES = _promises()


def test_every_port_names_its_folder() -> None:
    """Values and helpers have none."""
    assert len(PROMISES) == len(PROTOCOLS)


@pytest.mark.parametrize("folder", PROMISES)
def test_every_promise_has_its_module(folder: str) -> None:
    """A promise exists only with a module that tests it; a port with one promise needs one module."""
    modules = _modules(folder)

    assert modules
    assert set(PROMISES[folder]) <= modules


@pytest.mark.parametrize("folder", PROMISES)
def test_every_module_tests_a_promise(folder: str) -> None:
    """A module is named after its promise, alone or followed by the part of it that it tests."""
    promised = PROMISES[folder]
    astray = [name for name in _modules(folder) if promised and name.split("_")[0] not in promised]

    assert astray == []


def test_every_folder_has_a_port() -> None:
    folders = {path.parent.name for path in HERE.glob("*/test_*.py")}

    assert folders <= set(PROMISES)


def test_every_module_begins_with_its_port() -> None:
    """Its docstring does, so that a reader finds the way back."""
    astray = [
        path.name
        for path in HERE.glob("*/test_*.py")
        if not path.read_text(encoding="utf-8").startswith(f'"""{_title(path.parent.name)}')
    ]

    assert astray == []


def _title(folder: str) -> str:
    return folder.replace("_", " ").capitalize()
