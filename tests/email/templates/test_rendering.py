"""Templates: their language, their output, and their limits."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakSet, ref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import nodes

from carteiro.email.message import make_email, restore_email, stored_content
from carteiro.email.templates.language import Program, outlines, program
from carteiro.email.templates.rendering import (
    MAX_BODY_BYTES,
    Rendered,
    check_template,
    faults_of,
    render,
    render_email,
    sample_templates,
)
from carteiro.email.templates.runtime import FILTERS, TESTS
from carteiro.email.templates.work import Allowance
from carteiro.errors import InvalidMessage
from carteiro.model import NewTemplate, Template, TenantId
from carteiro.policy.html import find_danger
from carteiro.ports import Backend
from support.builders import ACME, BRASA, tenants_named
from support.quick_store import quick_backend

LONG = 10**9
TOO_MUCH = "takes too much work"
SAMPLE_WORDS = {
    "user_data": {"full_name": "Test User"},
    "app_name": "MadenAI",
    "login_url": "https://app.example.com/entrar",
    "confirmation_url": "https://app.example.com/confirmar?t=1",
}


def a_template(html: str | None = None, **changes: Any) -> NewTemplate:
    """A template; ``changes`` are its fields."""
    fields: dict[str, Any] = {"type": "welcome", "subject": "Oi", "html": html} | changes
    return NewTemplate(ACME, **fields)


def text_of(source: str, **variables: Any) -> str:
    """A text rendered with these variables."""
    made = render(a_template(text=source), variables)
    assert made.text is not None
    return made.text


def faults(error: InvalidMessage) -> dict[str, str]:
    """The errors, by field."""
    return {each.field: each.message for each in error.fields}


def refusal(source: str, **variables: Any) -> dict[str, str]:
    """The reason why a text cannot be rendered with these variables."""
    with pytest.raises(InvalidMessage) as caught:
        text_of(source, **variables)
    return faults(caught.value)


# --- output
# ---------------------------------------------------------------------------------------


def test_all_three_parts_are_rendered() -> None:
    """Nested variables in subject, html and text."""
    template = a_template(
        "<p>Olá, {{ user_data.full_name }}</p>",
        subject="Oi, {{ user_data.full_name }}",
        text="Olá, {{ user_data.full_name }}",
    )

    made = render(template, {"user_data": {"full_name": "Ana"}})

    assert made == Rendered("Oi, Ana", "<p>Olá, Ana</p>", "Olá, Ana")


@pytest.mark.parametrize(("source", "made"), [("{{ true }}", "true"), ("x{{ none }}", "x")])
def test_constants_are_printed_alike_in_html_and_text(source: str, made: str) -> None:
    """Never in Python notation."""
    rendered = render(a_template(source, text=source), {})

    assert (rendered.html, rendered.text) == (made, made)


def test_html_is_escaped_and_text_is_not() -> None:
    """A variable cannot add markup."""
    template = a_template('<p title="{{ x }}">{{ x }}</p>', subject="{{ x }}", text="{{ x }}")

    made = render(template, {"x": "<b>\"&'"})

    assert made.html == '<p title="&lt;b&gt;&#34;&amp;&#39;">&lt;b&gt;&#34;&amp;&#39;</p>'
    assert (made.subject, made.text) == ("<b>\"&'", "<b>\"&'")


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("{{ a }} {{ n }} {{ t }} {{ nothing }}.", "Ana 3 true ."),
        ("{{ list[1] }}{{ list[-1].x }}{{ o['x'] }}", "2yz"),
        ("{% for i in list %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/3 2/3 3/3 "),
        ("{% for i in none_here %}x{% else %}nobody{% endfor %}", "nobody"),
        ("{% for key in o %}{{ key }}{% endfor %}", "x"),
        ("{% if n > 2 and a == 'Ana' %}yes{% elif t %}no{% endif %}", "yes"),
        ("{{ 'a' if n in list else 'b' }}", "b"),
        ("{{ n * 2 + 1 }} {{ n / 2 }} {{ n % 2 }} {{ -n }}", "7 1.5 1 -3"),
        ("{{ a | upper | lower | title | trim }} {{ list | length }}", "Ana 3"),
        ("{{ missing | default('—') }} {{ missing is defined }}", "— false"),
        ("{{ 2.567 | round(1) }} {{ '7' | int + 1 }}", "2.6 8"),
        ("{# nobody reads this #}{% raw %}{{ a }}{% endraw %}", "{{ a }}"),
        ("{{ 'longer than that' | truncate(9) }}", "longer..."),
    ],
)
def test_language_covers_common_letters(source: str, made: str) -> None:
    """Variables, conditions, loops, a few filters and sums."""
    variables = {
        "a": "Ana",
        "n": 3,
        "t": True,
        "nothing": None,
        "list": [1, 2, {"x": "y"}],
        "o": {"x": "z"},
        "none_here": [],
    }

    assert text_of(source, **variables) == made


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r{"), max_size=200))
def test_plain_text_stays_unchanged(source: str) -> None:
    """Except for one line break at its end."""
    assert text_of("x" + source) == ("x" + source).removesuffix("\n")


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abkeys_", min_size=1, max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
_SOURCES = st.lists(
    st.sampled_from(
        [
            *("{{ a }}", "{{ a.b }}", "{{ a[0] }}", "{{ a.keys }}", "{{ b.items }}", "{{ a + b }}"),
            *("{{ a * b }}", "{{ a | upper }}", "{{ a | length }}", "{{ a | first }}", "<p>"),
            *("{% for i in a %}{{ i }}{% endfor %}", "{% if a > b %}x{% endif %}", "{{ a % b }}"),
            *("{{ a | round(2) }}", "{{ a | int }}", "{{ a | truncate(3) }}", "{{ a in b }}"),
        ]
    ),
    min_size=1,
    max_size=4,
)


@given(source=_SOURCES.map("".join), variables=st.dictionaries(st.sampled_from(["a", "b"]), _JSON))
def test_any_variables_are_rendered_or_refused(source: str, variables: dict[str, Any]) -> None:
    """No other error, and nothing of Python in the output."""
    try:
        made = render(a_template(f"<p>{source}</p>"), variables)
    except InvalidMessage:
        return

    assert made.html is not None
    assert "built-in" not in made.html
    assert "object at 0x" not in made.html


_SIGNS = (
    *("{{", "}}", "{%", "%}", "{#", "#}", "{%-", "for", "in", "if", "else", "endif", "endfor"),
    *("x", "i", "loop", "self", "_scope", ".", "|", "upper", "default", "(", ")", "[", "]", "{"),
    *("'", "0", "-1", "1e9", "+", "*", "~", "not", "and", "is", "defined", "set", "=", ",", "\n"),
    *("é", "\N{FULLWIDTH LOW LINE}scope", "None", "raw", "endraw", "recursive", ":", "}", "#"),
)


@given(st.lists(st.sampled_from(_SIGNS), max_size=14).map(" ".join))
def test_any_template_is_parsed_or_refused(source: str) -> None:
    """Any sequence of tokens of the language, in the parser and in the renderer."""
    template = a_template(source or "x")
    if faults_of(template):
        return

    with suppress(InvalidMessage):
        render(template, {"x": [1, "a", {"x": 2}], "i": 3})


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_variable_never_becomes_an_element(word: str) -> None:
    """Only the template has markup, with any value of a variable."""
    made = render(a_template("<p>{{ word }}</p>"), {"word": word})

    assert made.html is not None
    assert made.html.count("<") == 2
    assert find_danger(made.html) is None


# --- missing variables
# ----------------------------------------------------------------------------


def test_all_missing_variables_are_named_at_once() -> None:
    """In every part, by path, each once."""
    template = a_template(
        "{{ user_data.full_name }} {{ plan.name | upper }} {{ items[0].price }} {{ app }}",
        subject="{{ app }} {{ user_data.nick }}",
    )

    with pytest.raises(InvalidMessage) as caught:
        render(template, {"user_data": {"full_name": "Ana"}, "items": [{}]})

    assert faults(caught.value) == {
        "template.variables.app": "is required",
        "template.variables.user_data.nick": "is required",
        "template.variables.plan.name": "is required",
        "template.variables.items.0.price": "is required",
    }
    assert not any(each.missing for each in caught.value.fields)


@pytest.mark.parametrize(
    "source",
    [
        "{{ x }}",
        "{% if x %}{% endif %}",
        "{% if not x %}{% endif %}",
        "{% for i in x %}{% endfor %}",
        "{{ x + 1 }}",
        "{{ x == 1 }}",
        "{{ x != 1 }}",
        "{{ x < 1 }}",
        "{{ x | length }}",
        "{{ x | upper }}",
        "{{ x | round }}",
        "{{ -x }}",
        "{{ 1 in x }}",
    ],
)
def test_used_variable_must_exist(source: str) -> None:
    """A missing variable is never taken for an empty one."""
    assert refusal(source) == {"template.variables.x": "is required"}


def test_unreached_variable_is_not_required() -> None:
    """Only used ones must exist."""
    assert text_of("{% if a %}{{ b }}{% endif %}.", a=False) == "."


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("{{ o }}", "cannot be printed"),
        ("{{ l }}", "cannot be printed"),
        ("{{ l | upper }}", "cannot be printed"),
        ("{{ o | e }}", "cannot be printed"),
        ("{{ s.upper }}", "'upper' cannot be read"),
        ("{{ s[0] }}", "0 cannot be read"),
        ("{% for c in s %}{% endfor %}", "must be over a list"),
        ("{{ s + s }}", "needs numbers"),
        ("{{ s | round }}", "needs a number"),
        ("{{ s < 1 }}", "cannot be rendered"),
        ("{{ 1 / 0 }}", "cannot be rendered"),
        ("{{ 'x' if false }}", ""),
    ],
)
def test_impossible_operation_is_reported(source: str, fault: str) -> None:
    """As an error of the sender, not of the server."""
    told = refusal(source, o={"a": 1}, l=[1], s="text")

    assert list(told) == ["template.variables"]
    assert fault in told["template.variables"]


# --- limits
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ x.__class__.__mro__ }}",
        "{{ x['__class__'] }}",
        "{{ o.keys }}",
        "{{ o.items }}",
        "{{ l.append }}",
        "{{ s.format }}",
        "{% for i in l %}{{ loop.__class__ }}{% endfor %}",
        "{% for i in l %}{{ loop.nextitem }}{% endfor %}",
        "{% for i in l %}{{ loop }}{% endfor %}",
    ],
)
def test_python_attributes_are_unreachable(source: str) -> None:
    """A dot leads into the variables and nowhere else."""
    assert refusal(source, x=1, o={"a": 1}, l=[1], s="{0.__class__}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ x() }}",
        "{{ range(10) }}",
        "{{ s.format(1) }}",
        "{{ o.items() }}",
        "{{ s | attr('upper') }}",
        "{{ s | format(1) }}",
        "{{ s | replace('a', 'aaaa') }}",
        "{{ s | center(1000000000) }}",
        "{{ s | indent(1000000000) }}",
        "{{ l | join('x') }}",
        "{{ l | map('upper') }}",
        "{{ l | list }}",
        "{{ l | sum }}",
        "{{ s | safe }}",
        "{{ s | wordwrap(1) }}",
        "{{ s | pprint }}",
        "{{ s | xmlattr }}",
        "{{ s | filesizeformat }}",
        "{{ s is divisibleby(2) }}",
        "{{ s is odd }}",
        "{{ s is callable }}",
        "{{ s is sameas(s) }}",
        "{{ s is filter }}",
        "{{ 10 ** 1000000000 }}",
        "{{ s ~ s }}",
        "{{ s[0:1] }}",
        "{{ [s, s] }}",
        "{{ (s, s) }}",
        "{{ {'a': s} }}",
        "{{ _steps }}",
        "{{ self }}",
        "{{ super }}",
        "{{ caller }}",
        "{% set a = 1 %}",
        "{% set a %}x{% endset %}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% from 'x' import y %}",
        "{% extends 'x' %}",
        "{% block b %}{% endblock %}",
        "{% macro m() %}{% endmacro %}",
        "{% call x() %}{% endcall %}",
        "{% filter upper %}x{% endfilter %}",
        "{% with a = 1 %}{% endwith %}",
        "{% autoescape false %}{% endautoescape %}",
        "{% do x %}",
        "{% for i in l recursive %}{{ loop(i) }}{% endfor %}",
        "{% for i in range(9) %}{% endfor %}",
        "{% for i in 'abc' %}{% endfor %}",
        "{% for a, b in l %}{% endfor %}",
        "{% for loop in l %}{% endfor %}",
        "{% for _i in l %}{% endfor %}",
        "{{ x | _paid(1) }}",
        "{{ x | default(y()) }}",
        "{{ x | default(**o) }}",
        "{{ x is in(*l) }}",
        "{{ x | _searched }}",
        "{{ }}",
        "{{ x",
        "{% if x %}",
        "{% endfor %}",
        "{{ x | nothing }}",
        "{{ x | truncate(length=5, length=6) }}",
        "{{ x | default(__debug__=1) }}",
        "{{ '\\ud800' }}",
        "{{ x == '\\x00' }}",
        "{{ 1e999 }}",
        "{% if x == 0x" + "f" * 5_000 + " %}{% endif %}",
    ],
)
def test_forbidden_syntax_is_refused_when_stored(source: str) -> None:
    """Before any message is sent."""
    with pytest.raises(InvalidMessage) as caught:
        check_template(a_template(f"<p>{source}</p>"))

    assert list(faults(caught.value)) == ["html"]


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10 }}",
        f"{{{{ 'a' * {LONG} }}}}",
        f"{{{{ s * {LONG} }}}}",
        f"{{{{ l * {LONG} }}}}",
        f"{{{{ '%{LONG}d' % 1 }}}}",
        f"{{{{ f % {LONG} }}}}",
        "{{ " + " * ".join(["n"] * 20) + " }}",
        f"{{{{ 1.5 | round({LONG}) }}}}",
        "{{ n | round(-5) }}",
    ],
)
def test_numbers_do_not_grow_without_limit(source: str) -> None:
    """Numbers stay small, text is neither multiplied nor formatted."""
    assert refusal(source, s="a" * 10_000, l=[1], n=10**14, f="%1000000000d")


@pytest.mark.parametrize(
    ("body", "depth"),
    [("", 1), ("", 2), ("", 4), ("{{ i }}", 3), ("{% if i %}{% endif %}" * 400, 1)],
)
def test_loops_are_bounded(body: str, depth: int) -> None:
    """Nested, empty or long: all iterations together are bounded."""
    loops = "{% for i in items %}" * depth + body + "{% endfor %}" * depth

    assert TOO_MUCH in refusal(loops, items=[0] * 100_000)["template.variables"]


def test_output_is_bounded() -> None:
    """Repeated long text is cut off early."""
    told = refusal("{% for i in items %}{{ s }}{% endfor %}", items=[0] * 1000, s="a" * 1000)
    many = refusal("{{ s }}" * 100, s="é" * (MAX_BODY_BYTES // 150))

    assert "must not become longer" in told["template.variables"]
    assert "at most" in many["template.variables"]


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "not " * 5000 + "1 }}",
        "{{ " + " + ".join(["1"] * 5000) + " }}",
        "{{ x" + ".x" * 5000 + " }}",
        "{{ x" + "[0" * 5000 + "]" * 5000 + " }}",
        "{{ x" + "|upper" * 5000 + " }}",
        "{{ x" + "|upper" * 11 + " }}",
        "x" + ("{% if s" + "|title" * 50 + " == 1 %}{% endif %}") * 6,
        "{{a}}" * 100_000,
        "{##}" * 100_000,
        "{{ " + "'a' " * 100_000 + " }}",
        "{% if x %}" * 5000 + "{% endif %}" * 5000,
        "{% for i in x %}" * 5 + "{% endfor %}" * 5,
        "{{ " + "9" * 5000 + " }}",
        "{{ x }}" * 2_000,
        "x" * (MAX_BODY_BYTES + 1),
        "é" * (MAX_BODY_BYTES // 2 + 1),
        "\0",
        "\ud800",
    ],
)
def test_template_that_is_too_deep_or_too_long_is_refused(source: str) -> None:
    """No template breaks the parser."""
    with pytest.raises(InvalidMessage):
        check_template(a_template(source))


@pytest.mark.parametrize("name", ["filters", "tests"])
def test_every_allowed_name_exists_in_the_language(name: str) -> None:
    words = FILTERS if name == "filters" else TESTS
    needs = {"in": "in [1]", "eq": "eq 1", "ne": "ne 1", "lt": "lt 1", "gt": "gt 1"}
    sign = "|" if name == "filters" else "is"

    found = [
        f"{{{{ x {sign} {needs.get(word, word)} }}}}" for word in sorted(words - {"in", "ge", "le"})
    ]

    assert [list(faults_of(a_template(each))) for each in found] == [[]] * len(found)


def test_variables_are_data() -> None:
    """Template syntax in a variable stays text."""
    assert text_of("{{ x }}", x="{{ y }}{% for %}") == "{{ y }}{% for %}"


def test_subclass_of_str_is_treated_as_plain_text() -> None:
    """A caller of the library cannot mark a variable as safe by accident."""

    class Loud(str):
        __slots__ = ()

        def __html__(self) -> str:
            return "<script>"

    assert render(a_template("{{ x }}"), {"x": Loud("<b>")}).html == "&lt;b&gt;"


@pytest.mark.parametrize(
    "variables",
    [
        {"x": "a\0b"},
        {"x": "\ud800"},
        {"x": object()},
        {"x": {1, 2}},
    ],
)
def test_invalid_variables_are_refused(variables: dict[str, Any]) -> None:
    """Valid are text, numbers, booleans, lists and objects that every store can hold."""
    with pytest.raises(InvalidMessage):
        render(a_template("{{ x }}"), variables)


@pytest.mark.parametrize("depth", [200, 100_000])
def test_variables_may_nest_to_any_depth(depth: int) -> None:
    """They are rendered or refused, and break nothing."""
    nested: Any = 1
    for _ in range(depth):
        nested = [nested]

    assert refusal("{{ x[0] }}", x=nested)["template.variables"]


def test_variables_are_bounded() -> None:
    """The cost of an operation grows with their size."""
    assert "at most" in refusal("{{ x | length }}", x="a" * 262_144)["template.variables"]


def test_slow_iterations_are_bounded() -> None:
    """A few slow iterations cost as much as many quick ones."""
    slow = "{% for i in items %}" + "{% if x | upper | lower | title == '' %}{% endif %}" * 20
    told = refusal(slow + "{% endfor %}", items=[0] * 1000, x="ß" * 100_000)

    assert TOO_MUCH in told["template.variables"]


@pytest.mark.parametrize(
    "source",
    [
        "{% if s | title | title == 1 %}{% endif %}",
        "{% if s | upper == 1 %}{% endif %}" * 40,
        "{% if 1 == s | truncate(9, end=t) %}{% endif %}" * 40,
        "{% if s | e == 1 %}{% endif %}" * 40,
        "{% if t in s %}{% endif %}" * 40,
        "{% if t not in s %}{% endif %}" * 40,
        "{% if t is in s %}{% endif %}" * 40,
        "{% if t is in(seq=s) %}{% endif %}" * 40,
        "{% if 2 in list %}{% endif %}" * 100,
        "{% if list == list %}{% endif %}" * 40,
    ],
)
def test_work_outside_loops_is_bounded(source: str) -> None:
    """An operation on a long text or list is charged by its length."""
    told = refusal("x" + source, s="a b " * 40_000, t="c", list=[0] * 20_000)

    assert TOO_MUCH in told["template.variables"]


def test_parts_of_an_email_share_its_budget() -> None:
    """Work that is allowed for one part is too much for all three."""
    some = "x" + "{% if s | upper == 1 %}{% endif %}" * 12
    words = {"s": "a" * 200_000}

    assert render(a_template(some), words).html == "x"
    with pytest.raises(InvalidMessage) as caught:
        render(a_template(some, subject=some, text=some), words)

    assert faults(caught.value) == {"template.variables": f"text: {TOO_MUCH}"}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("{{ (s | int(0, 32)) // (s | int(0, 32)) }}", "too large"),
        ("{{ s | trim(s) }}", "at most 100 characters"),
    ],
)
def test_quadratic_operations_are_refused(source: str, fault: str) -> None:
    """Division of long numbers, and a search for each of many at each place."""
    assert fault in refusal(source, s="9" * 50_000)["template.variables"]


def test_nothing_is_evaluated_while_a_template_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jinja would fold each part of an expression once per enclosing part."""
    tried: list[nodes.Not] = []
    monkeypatch.setattr(nodes.Not, "as_const", lambda each, *_: tried.append(each))

    Program("{{ " + "not (" * 50 + "x" + ")" * 50 + " }}", escapes=True)

    assert tried == []


def test_cache_of_parsed_templates_is_bounded() -> None:
    """A tenant that stores one long template after the other does not fill the memory."""
    read = [WeakSet([program(f"{i}".ljust(MAX_BODY_BYTES), escapes=True)]) for i in range(30)]

    assert 0 < sum(map(len, read)) < 10


def test_evicted_template_is_freed_at_once() -> None:
    """Without a garbage collection, which may be long in coming."""
    read = Program("{{ x }}", escapes=True)
    code = ref(read._template.root_render_func)

    gc.disable()
    try:
        del read
        assert code() is None
    finally:
        gc.enable()


def test_reported_missing_variables_are_bounded() -> None:
    """An answer stays short, with any names in a template."""
    told = refusal(
        "{% for name in names %}{{ x[name] }}{% endfor %}",
        names=[f"{number}{'é' * 500}" for number in range(200)],
        x={},
    )

    assert len(told) == 100
    assert max(map(len, told)) < 150


def test_large_json_numbers_can_be_used() -> None:
    """The limit is for computed numbers."""
    assert text_of("{{ n % 10 }}", n=2**63) == "8"


@pytest.mark.parametrize(
    "word", ["a\nb", "a\r\nBcc: x@example.com", "a" * 151, "", " ", "a\u2028b"]
)
def test_variable_cannot_break_out_of_the_subject(word: str) -> None:
    """The subject is one line of 1 to 150 characters."""
    with pytest.raises(InvalidMessage) as caught:
        render(a_template("<p>", subject="{{ word }}"), {"word": word})

    assert list(faults(caught.value)) == ["template.variables"]


def test_empty_message_is_refused() -> None:
    """All of its text depended on a condition."""
    assert refusal("{% if x %}Oi{% endif %}", x=False)


# --- storing templates
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": ""}, "type"),
        ({"type": "a/b"}, "type"),
        ({"type": "a b"}, "type"),
        ({"type": "x" * 101}, "type"),
        ({"type": "-x"}, "type"),
        ({"subject": ""}, "subject"),
        ({"subject": "x" * 2001}, "subject"),
        ({"subject": "{{ x() }}"}, "subject"),
        ({"html": None, "text": None}, "html"),
        ({"html": "", "text": ""}, "html"),
        ({"html": " \n"}, "html"),
        ({"html": "<p>{{ x }}</p><script>"}, "html"),
        ({"html": "{% for x in y %}{% else %}<p onclick='{{ x }}'>{% endfor %}"}, "html"),
        ({"text": "{{ x"}, "text"),
        ({"retry_preset": "often"}, "retryPreset"),
    ],
)
def test_invalid_field_is_named(changes: dict[str, Any], field: str) -> None:
    """By its name in the request."""
    with pytest.raises(InvalidMessage) as caught:
        check_template(a_template(**({"html": "<p>"} | changes)))

    assert list(faults(caught.value)) == [field]


@pytest.mark.parametrize(
    "html",
    [
        "{% if a %}<a href='{% else %}<a href=\"{% endif %}{{ url }}/onboarding?x=1",
        "<a href='{{ url }}' title='{{ title }}'>{{ body }}</a> says onclick=",
        "{{ '<script>' }}{# <script> #}",
        "<style>.a{color:{{ color }}}</style><!-- <p onclick=x> -->",
    ],
)
def test_template_that_can_be_sent_is_not_refused(html: str) -> None:
    """It is validated as it would be sent, with a value in each place."""
    check_template(a_template(html))


def test_rendered_white_space_is_empty() -> None:
    """The error blames the variables."""
    with pytest.raises(InvalidMessage) as caught:
        render(a_template("{% if x %}Oi{% endif %}\n"), {"x": False})

    assert faults(caught.value) == {"template.variables": "make html and text empty"}


def test_syntax_error_has_its_line() -> None:
    [fault] = faults_of(a_template("<p>\n{{ x }}\n{{ y() }}"))

    assert fault.message == "line 3: call is not allowed"


def test_samples_can_be_defined_and_sent() -> None:
    """Each is a valid, safe template, with its variables listed at its head."""
    samples = sample_templates(ACME)

    assert [each.type for each in samples] == ["signup_confirmation", "welcome_user"]
    for sample in samples:
        assert not list(faults_of(sample))
        made = render(sample, SAMPLE_WORDS)
        assert "Test User" in f"{made.subject}{made.text}"
        assert made.html is not None
        assert find_danger(made.html) is None


# --- e-mail ---------------------------------------------------------------------------------------


@asynccontextmanager
async def a_backend(*templates: NewTemplate) -> AsyncIterator[Backend]:
    """A store with two tenants and these templates."""
    async with quick_backend() as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        for template in templates:
            assert isinstance(await backend.templates.define(template), Template)
        yield backend


async def test_email_gets_the_content_of_its_template() -> None:
    """The newest version is used, and named; the variables are not stored."""
    old = a_template("<p>Oi</p>")
    new = a_template("<p>Olá {{ name }}</p>", subject="Para {{ name }}", text="Olá")
    email = make_email(
        {"to": "ana@example.com", "template": {"type": "welcome", "variables": {"name": "Ana"}}}
    )

    async with a_backend(old, new) as backend:
        made = await render_email(email, tenant=ACME, templates=backend.templates)

    assert (made.subject, made.html, made.text) == ("Para Ana", "<p>Olá Ana</p>", "Olá")
    assert made.template is not None
    assert (made.template.type, made.template.version) == ("welcome", 2)
    assert "variables" not in stored_content(made)
    assert restore_email(stored_content(made)) == made


HEAVY = "x" + "{% if s | upper == 1 %}{% endif %}" * 20
LONG_WORD = "ß" * 100_000


async def test_event_loop_runs_while_a_template_is_rendered() -> None:
    """Slow work happens in a thread, on the first parse and later."""
    email = make_email(
        {"to": "a@example.com", "template": {"type": "welcome", "variables": {"s": LONG_WORD}}}
    )
    async with a_backend(a_template(HEAVY)) as backend:
        for _ in ("read first", "known"):
            rendering = asyncio.create_task(
                render_email(email, tenant=ACME, templates=backend.templates)
            )
            turns = 0
            while not rendering.done():
                await asyncio.sleep(0)
                turns += 1

            assert (await rendering).html == "x"
            assert (
                turns > 10
            )  # one to look the template up, one to render it, if others had to wait


async def test_emails_of_a_request_share_a_budget() -> None:
    """When it is spent, the others are refused until another request; one without a template is not."""
    heavy = {"to": "a@example.com", "template": {"type": "welcome", "variables": {"s": LONG_WORD}}}
    plain = {"to": "a@example.com", "subject": "Oi", "text": "Oi"}
    items = [make_email(each) for each in [heavy] * 30 + [plain]]
    allowance = Allowance()
    answers: list[str] = []
    async with a_backend(a_template(HEAVY)) as backend:
        for email in items:
            try:
                await render_email(
                    email, tenant=ACME, templates=backend.templates, allowance=allowance
                )
                answers.append("rendered")
            except InvalidMessage as error:
                answers += faults(error)

    first = answers.index("template")
    assert 20 <= first < 30
    assert answers == ["rendered"] * first + ["template"] * (30 - first) + ["rendered"]


def test_parsing_is_charged_to_the_first_email_of_a_template() -> None:
    """Many long templates in one request cost their parsing; later they are cheap."""
    templates = [a_template(f"<p>{number}</p>" + "{{ x }}" * 400) for number in range(40)]
    first, later = Allowance(), Allowance()

    with suppress(InvalidMessage):
        for template in templates:
            render(template, {"x": 1}, allowance=first)
    for _ in templates:
        render(templates[0], {"x": 1}, allowance=later)

    assert first.is_spent
    assert not later.is_spent


async def test_email_without_a_template_is_not_changed() -> None:
    """Nothing is looked up for it."""
    email = make_email({"to": "ana@example.com", "subject": "Oi", "text": "Oi"})

    async with a_backend() as backend:
        assert await render_email(email, tenant=ACME, templates=backend.templates) is email


@pytest.mark.parametrize("tenant", [ACME, BRASA])
async def test_unknown_type_is_named(tenant: TenantId) -> None:
    """Deleted, or another tenant's: this tenant has none."""
    email = make_email({"to": "ana@example.com", "template": {"type": "welcome"}})
    async with a_backend(a_template("<p>")) as backend:
        await backend.templates.delete(ACME, "welcome")

        with pytest.raises(InvalidMessage) as caught:
            await render_email(email, tenant=tenant, templates=backend.templates)

    assert list(faults(caught.value)) == ["template.type"]


@pytest.mark.parametrize("part", ["subject", "html", "text"])
def test_template_excludes_other_content(part: str) -> None:
    """A request has a template or content, not both."""
    with pytest.raises(InvalidMessage) as caught:
        make_email({"to": "ana@example.com", "template": {"type": "welcome"}, part: "Oi"})

    assert faults(caught.value) == {part: "must not be given in addition to a template"}


def test_request_cannot_choose_a_version() -> None:
    """The newest one is meant."""
    with pytest.raises(InvalidMessage) as caught:
        make_email({"to": "ana@example.com", "template": {"type": "welcome", "version": 1}})

    assert list(faults(caught.value)) == ["template.version"]


@pytest.mark.parametrize(
    ("template", "field"),
    [({}, "template.type"), ({"type": 1}, "template.type"), ("welcome", "template")],
)
def test_error_of_a_template_is_reported_alone(template: object, field: str) -> None:
    """A missing subject is not reported in addition."""
    with pytest.raises(InvalidMessage) as caught:
        make_email({"to": "ana@example.com", "template": template})

    assert list(faults(caught.value)) == [field]


@pytest.mark.parametrize(
    ("source", "judged"),
    [
        ("<p>{{ a }}</p>", ["<p>x</p>"]),
        ("{% if a %}<b>{% endif %}x", ["<b>x", "x"]),
        ("{% if a %}<b>{% else %}<b>{% endif %}", ["<b>"]),
    ],
)
def test_equal_outlines_are_validated_once(source: str, judged: list[str]) -> None:
    """A template without conditions that matter costs one validation, not two."""
    assert outlines(source) == judged
