"""A Helm chart without Helm: the part of its language that our chart uses; anything else is refused."""

import hashlib
import json
import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

_MARK = re.compile(r"(\{\{.*?\}\})", re.DOTALL)
_RANGE = re.compile(r"range \$(\w+), \$(\w+) := (\S+)")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_INCLUDE = re.compile(r'include \(print \$\.Template\.BasePath "/([\w.]+)"\) \.')


def rendered(chart: Path, **changes: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The rendered chart by kind and name, installed as ``tickets``; ``changes`` are values, ``__`` for a dot."""
    values = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
    for path, changed in changes.items():
        *folders, name = path.split("__")
        place = values
        for each in folders:
            place = place[each]
        assert name in place, f"the chart has no value {path}"
        place[name] = changed
    return _Rendering(chart / "templates", {"Values": values, "Release": {"Name": "tickets"}}).all()


class ChartRefused(Exception):
    """The chart refuses these values."""


class _Rendering:
    """One rendering of all templates with the same values."""

    def __init__(self, folder: Path, values: Mapping[str, Any]) -> None:
        self._folder = folder
        self._values = values

    def all(self) -> dict[tuple[str, str], dict[str, Any]]:
        texts = [self._text(each.name) for each in sorted(self._folder.iterdir())]
        made = [each for text in texts if (each := yaml.safe_load(text)) is not None]
        return {(each["kind"], each["metadata"]["name"]): each for each in made}

    def _text(self, template: str) -> str:
        parts = _MARK.split((self._folder / template).read_text("utf-8"))
        for number, part in enumerate(parts):
            if part.startswith("{{-"):
                parts[number - 1] = parts[number - 1].rstrip()
        return self._filled(parts, dict(self._values))

    def _filled(self, parts: list[str], names: dict[str, Any]) -> str:
        text = ""
        while parts:
            part, *parts = parts
            if not part.startswith("{{"):
                text += part
            elif _opens(part):
                inner, parts = _block(parts)
                text += "".join(self._filled(inner, each) for each in _rounds(_said(part), names))
            else:
                text += self._put(_said(part), names)
        return text

    def _put(self, said: str, names: dict[str, Any]) -> str:
        first, *pipes = [each.strip() for each in said.split(" | ")]
        if first.startswith("fail "):
            raise ChartRefused(json.loads(first.removeprefix("fail ")))
        if included := _INCLUDE.fullmatch(first):
            found: Any = self._text(included[1])
        elif first.startswith("toYaml "):
            found = yaml.safe_dump(_found(first.removeprefix("toYaml "), names)).rstrip()
        else:
            found = _found(first, names)
        for each in pipes:
            found = _piped(each, found)
        return str(found).lower() if isinstance(found, bool) else str(found)


def _said(part: str) -> str:
    return part.strip("{}- ")


def _opens(part: str) -> bool:
    return part.startswith("{{") and _said(part).startswith(("if ", "range "))


def _block(parts: list[str]) -> tuple[list[str], list[str]]:
    """The content of an opened block, and the text behind it."""
    depth = 1
    for number, part in enumerate(parts):
        is_end = part.startswith("{{") and _said(part) == "end"
        depth += _opens(part) - is_end
        if depth == 0:
            return parts[:number], parts[number + 1 :]
    raise AssertionError("a block has no end")


def _rounds(said: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The known names inside of a block, for each iteration."""
    if said.startswith("if "):
        return [names] if _worked_out(said.removeprefix("if "), names) else []
    looped = _RANGE.fullmatch(said)
    assert looped, f"not understood: {said}"
    key, each, over = looped.groups()
    return [names | {key: at, each: found} for at, found in sorted(_found(over, names).items())]


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "lt": operator.lt,
    "mul": operator.mul,
    "add": operator.add,
    "int64": int,
}


def _worked_out(said: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression: a name, or a function with its arguments, which may be in brackets."""
    tokens = _TOKEN.findall(said)
    found = _applied(tokens, names)
    assert not tokens, f"not understood: {said}"
    return found


def _applied(tokens: list[str], names: Mapping[str, Any]) -> Any:
    function = _FUNCTIONS.get(tokens[0])
    if function is None:
        return _found(tokens.pop(0), names)
    del tokens[0]
    arguments = []
    while tokens and tokens[0] != ")":
        arguments.append(_argument(tokens, names))
    return function(*arguments)


def _argument(tokens: list[str], names: Mapping[str, Any]) -> Any:
    first = tokens.pop(0)
    if first == "(":
        found = _applied(tokens, names)
        assert tokens.pop(0) == ")"
        return found
    return int(first) if first.isdigit() else _found(first, names)


def _found(name: str, names: Mapping[str, Any]) -> Any:
    assert re.fullmatch(r"[.$][\w.]+", name), f"not understood: {name}"
    found: Any = names
    for each in name[1:].split("."):
        found = found[each]
    return found


def _piped(pipe: str, found: Any) -> Any:
    if pipe == "quote":
        return json.dumps(str(found), ensure_ascii=False)
    if pipe == "int64":
        return int(found)
    if pipe == "sha256sum":
        return hashlib.sha256(found.encode()).hexdigest()
    assert pipe.startswith("nindent "), f"not understood: {pipe}"
    indent = " " * int(pipe.removeprefix("nindent "))
    return "".join(f"\n{indent}{line}" for line in found.splitlines())
