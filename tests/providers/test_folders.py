"""A provider is one folder: no other file imports it, or asks for it by its name."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import carteiro
from carteiro.config import specs

PACKAGE = Path(carteiro.__file__).parent
OWN = sorted(each.parent.name for each in PACKAGE.glob("providers/*/spec.py"))

# Uses of a name that do not branch on the provider.
ALLOWED = {
    ("config/providers.py", name): "the list of those that come with Carteiro" for name in OWN
} | {
    (
        "policy/classify.py",
        "smtp",
    ): "rules of the grammar of SMTP, for every provider that speaks it",
    (
        "policy/consequences.py",
        "smtp",
    ): "rules of the grammar of SMTP, for every provider that speaks it",
    ("console/timeline.py", "smtp"): "names the kind of a rule of that grammar, for people",
    ("providers/sandbox/provider.py", "ses"): "it plays what SES says",
    ("providers/sandbox/spec.py", "ses"): "it plays what SES says",
    ("policy/rules/gateways.py", "resend"): "a relay among others, known by its text",
}


class Names(NamedTuple):
    """Imported names, attributes, and texts without a space, of a file."""

    imported: frozenset[str]
    attributes: frozenset[str]
    texts: frozenset[str]


@cache
def _names() -> dict[str, Names]:
    files = sorted(PACKAGE.rglob("*.py"))
    return {each.relative_to(PACKAGE).as_posix(): _read(each) for each in files}


def _read(file: Path) -> Names:
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return Names(
        frozenset(name for node in nodes for name in _imported(node)),
        frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute)),
        frozenset(each for each in texts if isinstance(each, str) and " " not in each),
    )


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{node.module}.{each.name}" for each in node.names)


def _files(provider: str) -> list[tuple[str, Names]]:
    """Every file outside the folder of a provider."""
    return [each for each in _names().items() if not each[0].startswith(f"providers/{provider}/")]


def _asks_for(names: Names, provider: str) -> bool:
    """True if it has the name as a text, as the start of a rule or a code, or as an attribute."""
    starts = (f"{provider}.", f"{provider}:", f"{provider.upper()}_")
    return (
        provider in names.attributes
        or provider in names.texts
        or any(each.startswith(starts) for each in names.texts)
    )


def test_every_folder_is_found() -> None:
    """Each is in the list of built-in providers."""
    assert set(OWN) <= set(specs())


@pytest.mark.parametrize("provider", OWN)
def test_provider_is_imported_nowhere_else(provider: str) -> None:
    """Also not inside of a function."""
    folder = f"carteiro.providers.{provider}"
    found = [
        where
        for where, names in _files(provider)
        if any(f"{name}.".startswith(f"{folder}.") for name in names.imported)
    ]

    assert found == []


@pytest.mark.parametrize("provider", OWN)
def test_provider_is_named_nowhere_else(provider: str) -> None:
    """Differences between providers are in their specs."""
    found = [where for where, names in _files(provider) if _asks_for(names, provider)]

    assert [where for where in found if (where, provider) not in ALLOWED] == []


def test_every_exception_is_needed() -> None:
    needed = {
        (where, name) for name in OWN for where, names in _files(name) if _asks_for(names, name)
    }

    assert set(ALLOWED) <= needed
