"""The template language: a small, safe part of Jinja with bounded cost.

Variables with their parts (``{{ user_data.full_name }}``), if, for over a given list, a few filters
and tests, arithmetic of numbers. No calls, no assignments, no other templates, no attributes of Python
objects. Limited are: the source length, the number and nesting of its parts, the work, the output.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple
from weakref import finalize

import orjson
from jinja2 import Template as Compiled
from jinja2 import TemplateSyntaxError, nodes
from jinja2.exceptions import TemplateRuntimeError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from carteiro.email.templates import runtime
from carteiro.email.templates.work import Work

MAX_SOURCE_CHARS = 512 * 1024
MAX_VARIABLES_BYTES = 256 * 1024
# Tags and tokens are counted before and while a template is parsed, as parsing is the slowest step.
_MOST_TAGS = 1_000
_MOST_TOKENS = 6_000
_MOST_NODES = 1_500
_DEEPEST = 60  # nesting of nodes
_DEEPEST_LOOPS = 4
_DEEPEST_FILTERS = 10
_STEPS_OF_READING = 4_000  # for each node
_STEPS_OF_READING_CHAR = 10
_STEPS_OF_NODE = 100
_CHARS_OF_STEP = 4  # of the output
_MOST_PROGRAMS = 256  # in the cache
_MOST_CHARS_OF_PROGRAMS = 8 * MAX_SOURCE_CHARS  # each is stored twice, with up to 4 bytes

_ALLOWED_NODES = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Name),
    *(nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test, nodes.Keyword),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Neg),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod),
)
_TAKEN_NAMES = frozenset({"caller", "self", "super"})  # Jinja defines objects under these names
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_TOO_MANY = "has too many parts"


class TemplateFault(Exception):
    """A template is not allowed, or cannot be rendered with these variables."""


class VariablesMissing(Exception):
    """A template uses variables that were not given; ``paths`` are those found, up to a limit."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        super().__init__(", ".join(paths))


class Readable(NamedTuple):
    """Variables as plain data, and their size in bytes."""

    words: dict[str, Any]
    size: int


def readable(variables: Mapping[str, Any]) -> Readable:
    """The variables as plain JSON data; raises `TemplateFault` on anything else."""
    try:
        text = orjson.dumps(dict(variables))
    except TypeError:
        raise TemplateFault("must be JSON values") from None
    if len(text) > MAX_VARIABLES_BYTES:
        raise TemplateFault(f"must have at most {MAX_VARIABLES_BYTES} bytes")
    if _NUL.search(text):
        raise TemplateFault("must not contain U+0000")
    return Readable(orjson.loads(text), len(text))


class Program:
    """A parsed and checked template source; `run` renders it."""

    def __init__(self, source: str, *, escapes: bool) -> None:
        environment = _ESCAPING if escapes else _PLAIN
        tree = _parsed(environment, source)
        count = _judge(tree)
        # Jinja's own search takes time quadratic in the depth.
        self._names = {each.name for each in tree.find_all(nodes.Name) if each.ctx == "load"}
        self._steps = count * _STEPS_OF_NODE
        self._unpaid = count * _STEPS_OF_READING + len(source) * _STEPS_OF_READING_CHAR
        _set_prices(tree)
        self._template = _compiled(environment, tree)
        # The compiled code refers to itself, and the garbage collector runs rarely in a server.
        finalize(self, self._template.root_render_func.__globals__.clear).atexit = False

    def run(self, variables: Readable, *, most_chars: int, work: Work) -> str:
        """Render the text; raises only `TemplateFault` or `VariablesMissing`."""
        unpaid, self._unpaid = (
            self._unpaid,
            0,
        )  # of parsing, for the first run: later ones use the cache
        work.note(unpaid)
        scope = runtime.Scope(work, size=variables.size)
        words = {name: runtime.part(variables.words, name, name, scope) for name in self._names}
        made, fault = "", None
        try:
            work.pay(self._steps)
            pieces = self._template.generate(words | {runtime.SCOPE: scope})
            made = _bounded(pieces, most_chars, work)
        except (TemplateRuntimeError, TemplateFault) as error:
            fault = str(error)
        except Exception as error:  # noqa: BLE001 - any error in a template is its author's to fix
            fault = f"cannot be rendered with these variables ({type(error).__name__})"
        if scope.missing:
            raise VariablesMissing(list(scope.missing))
        if fault is not None:
            raise TemplateFault(fault)
        return made


class _ProgramCache:
    """Cache of the programs that were last used, for all threads."""

    def __init__(self) -> None:
        self._programs: OrderedDict[tuple[str, bool], Program] = OrderedDict()
        self._chars = 0
        self._lock = Lock()

    def find(self, source: str, *, escapes: bool) -> Program | None:
        with self._lock:
            found = self._programs.get((source, escapes))
            if found is not None:
                self._programs.move_to_end((source, escapes))
            return found

    def keep(self, source: str, *, escapes: bool, program: Program) -> None:
        with self._lock:
            if (source, escapes) not in self._programs:
                self._chars += len(source)
            self._programs[source, escapes] = program
            while self._is_overfull:
                (oldest, _), _ = self._programs.popitem(last=False)
                self._chars -= len(oldest)

    @property
    def _is_overfull(self) -> bool:
        return len(self._programs) > _MOST_PROGRAMS or self._chars > _MOST_CHARS_OF_PROGRAMS


_CACHE = _ProgramCache()


def is_read(source: str, *, escapes: bool) -> bool:
    """True if the program is in the cache."""
    return _CACHE.find(source, escapes=escapes) is not None


def program(source: str, *, escapes: bool) -> Program:
    """The program of a source, parsed once; raises `TemplateFault` if it is not allowed."""
    found = _CACHE.find(source, escapes=escapes)
    if found is None:
        found = Program(source, escapes=escapes)
        _CACHE.keep(source, escapes=escapes, program=found)
    return found


def _bounded(pieces: Iterable[str], most_chars: int, work: Work) -> str:
    made: list[str] = []
    left = most_chars
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise TemplateFault(f"must not become longer than {most_chars} characters")
        made.append(piece)
    work.note((most_chars - left) // _CHARS_OF_STEP)
    return "".join(made)


# --- reading ----------------------------------------------------------------------------------


class _Counted(Extension):
    """Stops the parser as soon as a source has too many tokens."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """The same tokens, up to the limit."""
        for count, token in enumerate(stream):
            if count > _MOST_TOKENS:
                raise TemplateSyntaxError(_TOO_MANY, token.lineno)
            yield token


_ESCAPING = runtime.Environment(escapes=True, reader=_Counted)
_PLAIN = runtime.Environment(escapes=False, reader=_Counted)


def _parsed(environment: runtime.Environment, source: str) -> nodes.Template:
    if len(source) > MAX_SOURCE_CHARS:
        raise TemplateFault(f"must have at most {MAX_SOURCE_CHARS} characters")
    if sum(source.count(start) for start in ("{{", "{%", "{#")) > _MOST_TAGS:
        raise TemplateFault(_TOO_MANY)
    try:
        return environment.parse(source)
    except TemplateSyntaxError as error:
        raise TemplateFault(f"line {error.lineno}: {str(error.message)[:200]}") from None
    except (RecursionError, ValueError):  # endless nesting; a number with thousands of digits
        raise TemplateFault("is nested too deeply or has a number that is too long") from None


def _compiled(environment: runtime.Environment, tree: nodes.Template) -> Compiled:
    try:
        return Compiled.from_code(environment, environment.compile(tree), {})
    except SyntaxError as error:  # a syntax error of Python, such as a repeated argument
        raise TemplateFault(f"cannot be parsed: {error.msg[:200]}") from None


class _Place(NamedTuple):
    """Nesting of a node."""

    depth: int = 0
    loops: int = 0
    filters: int = 0

    def at(self, node: nodes.Node) -> "_Place":
        return _Place(
            self.depth + 1,
            self.loops + isinstance(node, nodes.For),
            self.filters + isinstance(node, nodes.Filter),
        )

    @property
    def is_too_deep(self) -> bool:
        return (
            self.depth > _DEEPEST or self.loops > _DEEPEST_LOOPS or self.filters > _DEEPEST_FILTERS
        )


def _judge(tree: nodes.Template) -> int:
    """The number of nodes, if all are allowed; without recursion, as the nesting is not limited yet."""
    waiting: list[tuple[nodes.Node, _Place]] = [(tree, _Place())]
    count = 0
    while waiting:
        node, above = waiting.pop()
        place = above.at(node)
        count += 1
        if count > _MOST_NODES:
            raise TemplateFault(_TOO_MANY)
        if place.is_too_deep:
            raise TemplateFault(_at(node, "is nested too deeply"))
        if (fault := _fault(node)) is not None:
            raise TemplateFault(_at(node, fault))
        waiting += [(child, place) for child in node.iter_child_nodes()]
    return count


def _fault(  # noqa: PLR0911 - a list of faults; the first is reported
    node: nodes.Node,
) -> str | None:
    if type(node) not in _ALLOWED_NODES:
        return f"{type(node).__name__.lower()} is not allowed"
    match node:
        case nodes.Filter(name=name) if name not in runtime.FILTERS:
            return f"the filter {name!r} is not allowed"
        case nodes.Filter() | nodes.Test() if node.dyn_args or node.dyn_kwargs:
            return "'*' before an argument of a filter or a test is not allowed"
        case nodes.Test(name=name) if name not in runtime.TESTS:
            return f"the test {name!r} is not allowed"
        case nodes.Name(name=name) if name.startswith("_") or name in _TAKEN_NAMES:
            return f"the name {name!r} is not allowed"
        case nodes.Const(value=value):
            return _constant_fault(value)
        case nodes.For():
            return _loop_fault(node)
    return None


def _constant_fault(value: object) -> str | None:
    """The fault of a constant: escapes can write characters that an e-mail must not contain."""
    if isinstance(value, int | float) and value > runtime.LARGEST_OPERAND:
        return "a number is too large"
    if isinstance(value, str) and _UNSENDABLE.search(value):
        return "a text must not contain U+0000 or half of a character"
    return None


def _loop_fault(node: nodes.For) -> str | None:
    if node.recursive:
        return "a recursive loop is not allowed"
    if not isinstance(node.target, nodes.Name) or node.target.name == "loop":
        return "a loop must have exactly one loop variable"
    if not isinstance(node.iter, nodes.Name | nodes.Getattr | nodes.Getitem):
        return "a loop must be over a variable"
    return None


def _at(node: nodes.Node, fault: str) -> str:
    return f"line {node.lineno}: {fault}" if node.lineno else fault


# --- outlines ---------------------------------------------------------------------------------


def outlines(source: str) -> list[str]:
    """The result of an HTML template if all its conditions hold, and if none does, if that differs.

    Each variable is replaced by a letter.
    """
    tree = _parsed(_ESCAPING, source)
    both = ("".join(_outline(tree.body, holds=holds)) for holds in (True, False))
    return list(dict.fromkeys(both))


def _outline(body: Iterable[nodes.Node], *, holds: bool) -> Iterator[str]:
    for node in body:
        match node:
            case nodes.Output():
                for each in node.nodes:
                    yield each.data if isinstance(each, nodes.TemplateData) else "x"
            case nodes.If() | nodes.For():
                yield from _outline(node.body if holds else node.else_, holds=holds)


# --- prices -----------------------------------------------------------------------------------


def _set_prices(tree: nodes.Template) -> None:
    """Charge each loop for its iterations, and each search for its items, before it starts."""
    for loop in list(tree.find_all(nodes.For)):
        count = 1 + sum(1 for _ in loop.find_all(nodes.Node))
        loop.iter = _through(runtime.PAID_LOOP, loop.iter, nodes.Const(count * _STEPS_OF_NODE))
    for operand in list(tree.find_all(nodes.Operand)):
        if operand.op in {"in", "notin"}:
            operand.expr = _through(runtime.PAID_SEARCH, operand.expr)
    for test in list(tree.find_all(nodes.Test)):
        if test.name == "in":
            test.args = [_through(runtime.PAID_SEARCH, each) for each in test.args]
            for named in test.kwargs:
                named.value = _through(runtime.PAID_SEARCH, named.value)


def _through(name: str, node: nodes.Node, *given: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(given), [], None, None, lineno=node.lineno)
