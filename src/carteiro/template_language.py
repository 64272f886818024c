"""What a template may say: a small part of Jinja that reaches nothing and ends soon, whoever wrote it.

Variables with their parts (``{{ user_data.full_name }}``), if, for over a given list, a few filters
and tests, sums of numbers. No calls, no assignments, no other templates, no attributes of Python
objects. Whatever could be made long or slow by a template or by its variables is bounded: what is
written, the number of its parts, how deep they nest, how often a loop turns, how much comes out.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from time import thread_time
from typing import Any, NewType

import orjson
from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2 import Template as Compiled
from jinja2.exceptions import TemplateRuntimeError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context

MAX_SOURCE_CHARS = 512 * 1024
_MOST_NODES = 2_000  # reading takes longest: a quarter of a millisecond each
MAX_VARIABLES_BYTES = 256 * 1024
_DEEPEST = 60  # nodes inside nodes
_DEEPEST_LOOPS = 4
_MOST_STEPS = 200_000  # nodes that all turns of all loops may visit
_MOST_SECONDS = 0.5  # of the processor
_LARGEST_NUMBER = 10**15
_MOST_PLACES = 10

_ALLOWED_NODES = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.For,
    nodes.Name,
    nodes.Const,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Filter,
    nodes.Test,
    nodes.Keyword,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.CondExpr,
    nodes.Neg,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
)
FILTERS = frozenset(
    {
        "capitalize",
        "count",
        "d",
        "default",
        "e",
        "escape",
        "first",
        "float",
        "int",
        "last",
        "length",
        "lower",
        "round",
        "title",
        "trim",
        "truncate",
        "upper",
    }
)
TESTS = frozenset(
    {
        "boolean",
        "defined",
        "eq",
        "false",
        "float",
        "ge",
        "gt",
        "in",
        "integer",
        "le",
        "lt",
        "mapping",
        "ne",
        "none",
        "number",
        "string",
        "true",
        "undefined",
    }
)
_TAKEN_NAMES = frozenset({"caller", "self", "super"})  # Jinja puts objects of its own there
_LOOP_PARTS = frozenset({"first", "index", "index0", "last", "length", "revindex", "revindex0"})
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_SCOPE = "_scope"  # templates cannot name what starts with an underscore
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class TemplateFault(Exception):
    """A template says what it may not say, or cannot be rendered with these variables."""


class VariablesMissing(Exception):
    """A template uses variables that were not given; ``paths`` are all that were met."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        super().__init__(", ".join(paths))


# --- reading ----------------------------------------------------------------------------------

Readable = NewType("Readable", dict[str, Any])


def readable(variables: Mapping[str, Any]) -> Readable:
    """The variables as plain data, nothing else: what JSON can hold; raises `TemplateFault` on anything more."""
    try:
        text = orjson.dumps(dict(variables))
    except TypeError:
        raise TemplateFault("must be what JSON can hold") from None
    if len(text) > MAX_VARIABLES_BYTES:
        fault = f"must have at most {MAX_VARIABLES_BYTES} bytes"
        raise TemplateFault(fault)
    if _NUL.search(text):
        raise TemplateFault("must not contain U+0000")
    return Readable(orjson.loads(text))


class Program:
    """One text that was read and found good; `run` puts words into it."""

    def __init__(self, source: str, *, escapes: bool) -> None:
        environment = _ESCAPING if escapes else _PLAIN
        tree = _parsed(environment, source)
        _judge(tree)
        self._names = find_undeclared_variables(tree)
        _count_loops(tree)
        code = environment.compile(tree)
        self._template = Compiled.from_code(environment, code, {})

    def run(self, variables: Readable, *, most_chars: int) -> str:
        """The text with its words in place; raises `TemplateFault` or `VariablesMissing` alone."""
        scope = _Scope()
        words = {name: _part(variables, name, name, scope) for name in self._names}
        made, fault = "", None
        try:
            made = _bounded(self._template.generate(words | {_SCOPE: scope}), most_chars)
        except (TemplateRuntimeError, TemplateFault) as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 - what a template does with variables is for its writers to mend
            fault = f"cannot be rendered with these variables ({type(error).__name__})"
        if scope.missing:
            raise VariablesMissing(list(scope.missing))
        if fault is not None:
            raise TemplateFault(fault)
        return made


@lru_cache(maxsize=256)
def program(source: str, *, escapes: bool) -> Program:
    """The program of a text, read once; raises `TemplateFault` if it may not be said."""
    return Program(source, escapes=escapes)


def _parsed(environment: "_Environment", source: str) -> nodes.Template:
    if len(source) > MAX_SOURCE_CHARS:
        text = f"must have at most {MAX_SOURCE_CHARS} characters"
        raise TemplateFault(text)
    try:
        return environment.parse(source)
    except TemplateSyntaxError as error:
        text = f"line {error.lineno}: {str(error.message)[:200]}"
        raise TemplateFault(text) from None
    except (RecursionError, ValueError):  # nested without end; a number of thousands of digits
        raise TemplateFault("is nested too deeply or has a number that is too long") from None


def _judge(tree: nodes.Template) -> None:
    """Walk without recursion: what is judged may be nested as deep as its writer likes."""
    waiting: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    count = 0
    while waiting:
        node, depth, loops = waiting.pop()
        count += 1
        loops += isinstance(node, nodes.For)
        if count > _MOST_NODES:
            raise TemplateFault("has too many parts")
        if depth > _DEEPEST or loops > _DEEPEST_LOOPS:
            raise TemplateFault(_at(node, "is nested too deeply"))
        if (fault := _fault(node)) is not None:
            raise TemplateFault(_at(node, fault))
        waiting += [(child, depth + 1, loops) for child in node.iter_child_nodes()]


def _fault(  # noqa: PLR0911 - a list of faults, the first that holds is told
    node: nodes.Node,
) -> str | None:
    if type(node) not in _ALLOWED_NODES:
        return f"{type(node).__name__.lower()} is not allowed"
    match node:
        case nodes.Filter(name=name) if name not in FILTERS:
            return f"the filter {name!r} is not allowed"
        case nodes.Filter(dyn_args=args, dyn_kwargs=named) if args or named:
            return "'*' before what a filter is given is not allowed"
        case nodes.Test(name=name) if name not in TESTS:
            return f"the test {name!r} is not allowed"
        case nodes.Name(name=name) if name.startswith("_") or name in _TAKEN_NAMES:
            return f"the name {name!r} is not allowed"
        case nodes.For():
            return _loop_fault(node)
    return None


def _loop_fault(node: nodes.For) -> str | None:
    if node.recursive:
        return "a recursive loop is not allowed"
    if not isinstance(node.target, nodes.Name) or node.target.name == "loop":
        return "a loop must give each item one name"
    if not isinstance(node.iter, nodes.Name | nodes.Getattr | nodes.Getitem):
        return "a loop must be over a variable"
    return None


def _at(node: nodes.Node, fault: str) -> str:
    return f"line {node.lineno}: {fault}" if node.lineno else fault


def _count_loops(tree: nodes.Template) -> None:
    """Let each loop pay for its turns before it starts."""
    for loop in tree.find_all(nodes.For):
        cost = 1 + sum(1 for _ in loop.find_all(nodes.Node))
        price = nodes.Const(cost, lineno=loop.lineno)
        loop.iter = nodes.Filter(loop.iter, "_paid", [price], [], None, None, lineno=loop.lineno)


# --- running ----------------------------------------------------------------------------------


def _bounded(pieces: Iterable[str], most_chars: int) -> str:
    made: list[str] = []
    left = most_chars
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            text = f"must not become longer than {most_chars} characters"
            raise TemplateFault(text)
        made.append(piece)
    return "".join(made)


class _Scope:
    """What one rendering has used: variables that are not there, turns of loops, time of the processor."""

    __slots__ = ("_steps", "_until", "missing")

    def __init__(self) -> None:
        self.missing: dict[str, None] = {}
        self._steps = _MOST_STEPS
        self._until = thread_time() + _MOST_SECONDS

    def pay(self, steps: int) -> None:
        """Take so many steps off the budget."""
        self._steps -= steps
        if self._steps < 0:
            raise TemplateRuntimeError("its loops turn too often")

    def watch(self) -> None:
        """Stop what takes too long, whatever it does in its turns."""
        if thread_time() > self._until:
            raise TemplateRuntimeError("takes too long")


class _Missing(Undefined):
    """A variable that was not given: notes itself when it is used, and lets the others be found too."""

    __slots__ = ("path", "scope")

    def __init__(self, path: str, scope: _Scope) -> None:
        super().__init__(name=path)
        self.path = path
        self.scope = scope

    @property
    def _undefined_message(self) -> str:
        self._note()
        return f"{self.path} is required"

    def _note(self) -> None:
        self.scope.missing[self.path] = None

    def __str__(self) -> str:
        self._note()
        return ""

    def __bool__(self) -> bool:
        self._note()
        return False

    def __len__(self) -> int:
        self._note()
        return 0

    def __iter__(self) -> Iterator[Any]:
        self._note()
        return iter(())

    def __eq__(self, other: object) -> bool:
        self._note()
        return False

    def __ne__(self, other: object) -> bool:
        self._note()
        return True

    def __hash__(self) -> int:
        return hash(self.path)


class _Parts(Sequence[Any]):
    """An object or a list among the variables; knows its place, to say what is missing in it."""

    __slots__ = ("path", "raw", "scope")

    def __init__(self, raw: Any, path: str, scope: _Scope) -> None:  # noqa: ANN401 - a dict or a list
        self.raw = raw
        self.path = path
        self.scope = scope

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, name: Any) -> Any:  # noqa: ANN401 - whatever a template holds
        """A part of it, by name or number."""
        return _part(self.raw, name, f"{self.path}.{name}", self.scope)

    def __iter__(self) -> Iterator[Any]:
        """The names of an object, the items of a list."""
        for index, each in enumerate(self.raw):
            yield _seen(each, f"{self.path}.{index}", self.scope)

    def __contains__(self, each: object) -> bool:
        return not isinstance(each, _Parts) and each in self.raw

    def __eq__(self, other: object) -> bool:
        return bool(self.raw == (other.raw if isinstance(other, _Parts) else other))

    def __hash__(self) -> int:
        return hash(self.path)


def _part(raw: Any, name: Any, path: str, scope: _Scope) -> Any:  # noqa: ANN401 - whatever a template holds
    is_name = isinstance(raw, dict) and isinstance(name, str) and name in raw
    is_number = isinstance(raw, list) and isinstance(name, int) and -len(raw) <= name < len(raw)
    return _seen(raw[name], path, scope) if is_name or is_number else _Missing(path, scope)


def _seen(each: object, path: str, scope: _Scope) -> object:
    return _Parts(each, path, scope) if isinstance(each, dict | list) else each


class _Turns(list[Any]):
    """The items of a loop; each turn looks at the clock."""

    __slots__ = ("scope",)
    scope: _Scope

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.scope.watch()
            yield each


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja without anything that reaches out of the variables."""

    intercepted_binops = frozenset(_ARITHMETIC)

    def __init__(self, *, escapes: bool) -> None:
        super().__init__(
            autoescape=escapes,
            undefined=StrictUndefined,
            finalize=_printed,
            keep_trailing_newline=False,
        )
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in FILTERS}
        self.filters |= {"round": _round, "_paid": _paid}
        self.tests = {name: self.tests[name] for name in TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - whatever a template holds
        """As `getitem`: a dot leads to a part of the variables, never to an attribute."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:  # noqa: ANN401 - whatever a template holds
        """A part of an object, a list or a text, or what a loop knows of its turn."""
        match obj:
            case _Missing():
                return _Missing(f"{obj.path}.{argument}", obj.scope)
            case _Parts():
                return obj[argument]
            case LoopContext() if argument in _LOOP_PARTS:
                return getattr(obj, argument)
        return StrictUndefined(hint=f"there is no {argument!r} in what is no object and no list")

    def call_binop(
        self,
        context: Context,
        operator: str,
        left: Any,  # noqa: ANN401 - whatever a template holds
        right: Any,  # noqa: ANN401 - whatever a template holds
    ) -> Any:  # noqa: ANN401 - a number
        """Sums of numbers; text is neither multiplied nor formatted."""
        del context
        for side in (left, right):
            if isinstance(side, Undefined):
                str(side)  # notes that it is missing
        if not (_is_number(left) and _is_number(right)):
            text = f"{operator!r} is for numbers"
            raise TemplateRuntimeError(text)
        return _small(_ARITHMETIC[operator](left, right))


def _is_number(each: object) -> bool:
    return isinstance(each, int | float) and not isinstance(each, bool)


def _small(number: float) -> float:
    if not abs(number) <= _LARGEST_NUMBER:
        raise TemplateRuntimeError("a sum became too large")
    return number


def _printed(each: object) -> object:
    """What may stand in a text: no list and no object, for nobody wants to read Python."""
    if each is None:
        return ""
    if isinstance(each, bool):
        return "true" if each else "false"
    if isinstance(each, str | int | float | Undefined):
        return each
    raise TemplateRuntimeError("a list or an object cannot be printed: name a part of it")


def _round(number: object, places: object = 0) -> float:
    """Numbers with so many places; Jinja's own takes powers of what it is given."""
    if isinstance(number, Undefined):
        str(number)
        return 0
    if not isinstance(number, int | float):
        raise TemplateRuntimeError("'round' is for numbers")
    if not isinstance(places, int) or not 0 <= places <= _MOST_PLACES:
        text = f"'round' takes 0 to {_MOST_PLACES} places"
        raise TemplateRuntimeError(text)
    return round(number, places)


@pass_context
def _paid(context: Context, items: object, cost: int) -> Sequence[object]:
    """The items of a loop, once its turns are paid for."""
    if isinstance(items, Undefined):
        return list(items)
    if not isinstance(items, _Parts):
        raise TemplateRuntimeError("a loop must be over a list")
    scope: _Scope = context[_SCOPE]
    scope.pay(cost * len(items))
    turns = _Turns(items)
    turns.scope = scope
    return turns


_ESCAPING = _Environment(escapes=True)
_PLAIN = _Environment(escapes=False)
