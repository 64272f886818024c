"""Running a template: isolated variables, and filters and loops that are charged before they start."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

from jinja2 import StrictUndefined
from jinja2.exceptions import TemplateRuntimeError
from jinja2.ext import Extension
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context

from carteiro.email.templates.work import Work

FILTERS = frozenset(
    {
        *("capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "last"),
        *("length", "lower", "round", "title", "trim", "truncate", "upper"),
    }
)
TESTS = frozenset(
    {
        *("boolean", "defined", "eq", "false", "float", "ge", "gt", "in", "integer", "le", "lt"),
        *("mapping", "ne", "none", "number", "string", "true", "undefined"),
    }
)
SCOPE = "_scope"  # templates cannot use names that start with an underscore
PAID_LOOP, PAID_SEARCH = "_paid", "_searched"
_STEPS_OF_TITLE = 20  # for each character, as it splits words; the other filters take 1
_STEPS_OF_FILTER = 50  # in addition to its characters
_STEPS_OF_ITEM = 3  # of a searched list
_LARGEST_NUMBER = 10**15
LARGEST_OPERAND = 2**64  # the largest JSON number; division of larger ones is slow
_MOST_PLACES = 10
_MOST_TRIMMED = 100  # characters; each is searched at each position
_MOST_MISSING = 100  # reported at once
_LONGEST_NAME = 100
_LOOP_PARTS = frozenset({"first", "index", "index0", "last", "length", "revindex", "revindex0"})
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
_NOT_PRINTED = "a list or an object cannot be printed: use one of its parts"
_Filter: TypeAlias = Callable[..., Any]


# --- variables --------------------------------------------------------------------------------


class Scope:
    """State of one run: missing variables, and work."""

    __slots__ = ("missing", "size", "work")

    def __init__(self, work: Work, *, size: int) -> None:
        self.missing: dict[str, None] = {}
        self.work = work
        self.size = size

    def note(self, path: str) -> None:
        """Record a missing variable, up to the limit."""
        if len(self.missing) < _MOST_MISSING:
            self.missing[path] = None


def _noting(answer: object) -> Any:  # noqa: ANN401 - any method without an effect
    """A method that records the use of a missing variable."""

    def method(self: "_Missing", *_: object) -> object:
        self.scope.note(self.path)
        return answer

    return method


class _Missing(Undefined):
    """A variable that was not given: records its use, and lets rendering continue to find others."""

    __slots__ = ("path", "scope")

    def __init__(self, path: str, scope: Scope) -> None:
        super().__init__(name=path)
        self.path = path
        self.scope = scope

    @property
    def _undefined_message(self) -> str:
        self.scope.note(self.path)
        return f"{self.path} is required"

    __str__ = _noting("")
    __bool__ = __eq__ = _noting(answer=False)
    __ne__ = _noting(answer=True)
    __len__ = _noting(0)
    __iter__ = _noting(iter(()))

    def __hash__(self) -> int:
        return hash(self.path)


class _Parts(Sequence[Any]):
    """An object or a list in the variables; knows its path, to report what is missing in it."""

    __slots__ = ("path", "raw", "scope")

    def __init__(self, raw: Any, path: str, scope: Scope) -> None:  # noqa: ANN401 - a dict or a list
        self.raw = raw
        self.path = path
        self.scope = scope

    def __str__(self) -> str:
        raise TemplateRuntimeError(_NOT_PRINTED)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, name: Any) -> Any:  # noqa: ANN401 - any value of a template
        """The part with this name or number."""
        return part(self.raw, name, _below(self.path, name), self.scope)

    def __iter__(self) -> Iterator[Any]:
        """The names of an object, the items of a list."""
        for index, each in enumerate(self.raw):
            yield _seen(each, f"{self.path}.{index}", self.scope)

    def __contains__(self, each: object) -> bool:
        return not isinstance(each, _Parts) and each in self.raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Parts):
            return False
        self.scope.work.pay(self.scope.size)  # the most that both can contain
        return bool(self.raw == other.raw)

    def __hash__(self) -> int:
        return hash(self.path)


def part(raw: Any, name: Any, path: str, scope: Scope) -> Any:  # noqa: ANN401 - any value of a template
    """The part with this name or number, or `_Missing`."""
    is_name = isinstance(raw, dict) and isinstance(name, str) and name in raw
    is_number = isinstance(raw, list) and isinstance(name, int) and -len(raw) <= name < len(raw)
    return _seen(raw[name], path, scope) if is_name or is_number else _Missing(path, scope)


def _seen(each: object, path: str, scope: Scope) -> object:
    return _Parts(each, path, scope) if isinstance(each, dict | list) else each


def _below(path: str, name: object) -> str:
    return f"{path}.{str(name)[:_LONGEST_NAME]}"


# --- filters ----------------------------------------------------------------------------------


def _priced(name: str, filter_: _Filter) -> _Filter:
    """The filter, charged by the length of its texts."""
    steps = _STEPS_OF_TITLE if name == "title" else 1
    takes_environment = hasattr(filter_, "jinja_pass_arg")  # no filter of ours takes anything else

    @pass_context
    @wraps(filter_)
    def paid(context: Context, *given: object, **named: object) -> object:
        scope: Scope = context[SCOPE]
        texts = (each for each in (*given, *named.values()) if isinstance(each, str))
        scope.work.pay(_STEPS_OF_FILTER + steps * sum(map(len, texts)))
        first = (context.environment,) if takes_environment else ()
        return filter_(*first, *given, **named)

    return paid


@pass_context
def _paid(context: Context, items: object, steps: int) -> Sequence[object]:
    """The items of a loop, after charging its iterations."""
    if isinstance(items, Undefined):
        return list(items)
    if not isinstance(items, _Parts):
        raise TemplateRuntimeError("a loop must be over a list")
    scope: Scope = context[SCOPE]
    scope.work.pay(steps * len(items))
    turns = _Turns(items)
    turns.work = scope.work
    return turns


@pass_context
def _searched(context: Context, among: Any) -> Any:  # noqa: ANN401 - any value of a template
    """The searched value, after charging the search."""
    if isinstance(among, str | _Parts):
        scope: Scope = context[SCOPE]
        scope.work.pay(len(among) if isinstance(among, str) else _STEPS_OF_ITEM * len(among))
    return among


class _Turns(list[Any]):
    """The items of a loop; each iteration checks the time limit."""

    __slots__ = ("work",)
    work: Work

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            self.work.pay(0)
            yield each


def _round(number: object, places: object = 0) -> float:
    """Round to ``places``; Jinja's own filter computes powers of its argument."""
    if isinstance(number, Undefined):
        str(number)
        return 0
    if not isinstance(number, int | float):
        raise TemplateRuntimeError("'round' needs a number")
    if not isinstance(places, int) or not 0 <= places <= _MOST_PLACES:
        raise TemplateRuntimeError(f"'round' takes 0 to {_MOST_PLACES} places")
    return round(number, places)


def _trimmer(trim: _Filter) -> _Filter:
    @wraps(trim)
    def few(text: object, chars: object = None) -> object:
        if isinstance(chars, str) and len(chars) > _MOST_TRIMMED:
            raise TemplateRuntimeError(f"'trim' takes at most {_MOST_TRIMMED} characters")
        return trim(text, chars)

    return few


# --- the environment --------------------------------------------------------------------------


class Environment(ImmutableSandboxedEnvironment):
    """Jinja restricted to the variables."""

    intercepted_binops = frozenset(_ARITHMETIC)

    def __init__(self, *, escapes: bool, reader: type[Extension]) -> None:
        super().__init__(
            autoescape=escapes,
            undefined=StrictUndefined,
            finalize=_printed,
            keep_trailing_newline=False,
            extensions=[reader],
            # Its cost is quadratic in the depth, and it would run filters during parsing.
            optimized=False,
        )
        self.globals.clear()
        known = {name: self.filters[name] for name in FILTERS}
        known |= {"round": _round, "trim": _trimmer(known["trim"])}
        self.filters = {name: _priced(name, each) for name, each in known.items()}
        self.filters |= {PAID_LOOP: _paid, PAID_SEARCH: _searched}
        self.tests = {name: self.tests[name] for name in TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - any value of a template
        """As `getitem`: a dot selects a part of the variables, never an attribute."""
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:  # noqa: ANN401 - any value of a template
        """A part of an object, a list or a text, or a field of the loop."""
        match obj:
            case _Missing():
                return _Missing(_below(obj.path, argument), obj.scope)
            case _Parts():
                return obj[argument]
            case LoopContext() if argument in _LOOP_PARTS:
                return getattr(obj, argument)
        name = str(argument)[:_LONGEST_NAME] if isinstance(argument, str) else argument
        return StrictUndefined(hint=f"{name!r} cannot be read: it is not in an object or a list")

    def call_binop(
        self,
        context: Context,
        operator: str,
        left: Any,  # noqa: ANN401 - any value of a template
        right: Any,  # noqa: ANN401 - any value of a template
    ) -> Any:  # noqa: ANN401 - a number
        """Arithmetic of numbers; text is not multiplied or formatted."""
        del context
        for side in (left, right):
            if isinstance(side, Undefined):
                str(side)  # records that it is missing
        if not (_is_number(left) and _is_number(right)):
            raise TemplateRuntimeError(f"{operator!r} needs numbers")
        bearable = _small(left, LARGEST_OPERAND), _small(right, LARGEST_OPERAND)
        return _small(_ARITHMETIC[operator](*bearable), _LARGEST_NUMBER)


def _is_number(each: object) -> bool:
    return isinstance(each, int | float) and not isinstance(each, bool)


def _small(number: float, most: int) -> float:
    if not abs(number) <= most:
        raise TemplateRuntimeError("a result is too large")
    return number


@pass_context  # else Jinja evaluates constants during parsing, before this function
def _printed(context: Context, each: object) -> object:
    """Refuse to print lists and objects: readers do not want to see Python."""
    del context
    if each is None:
        return ""
    if isinstance(each, bool):
        return "true" if each else "false"
    if isinstance(each, str | int | float | Undefined):
        return each
    raise TemplateRuntimeError(_NOT_PRINTED)
