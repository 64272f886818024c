"""HTML: what runs is found in every disguise, what does not passes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carteiro.policy.html import find_danger, look_closely, spells_danger

DANGEROUS = [
    "<script>alert(1)</script>",
    "<SCRIPT src=//x></SCRIPT>",
    "<script",
    "<svg><script href=x /></svg>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href="jav&#x09;ascript:alert(1)">x</a>',
    '<a href="&#106;avascript:alert(1)">x</a>',
    '<a href="&#0000106avascript&colon;alert(1)">x</a>',
    '<a href="java&Tab;scr&NewLine;ipt:alert(1)">x</a>',
    '<a href=" \x01 JaVa\nScRiPt:alert(1)">x</a>',
    '<a href="vbscript:x">x</a>',
    '<a href="data:text/html,x">x</a>',
    '<a href="data:text/html;base64,eA==">x</a>',
    "<form action=javascript:x>",
    "<button formaction=javascript:x>",
    '<body background="javascript:x">',
    '<object data="javascript:x">',
    '<param value="javascript:x">',
    '<img srcset="a.png 1x, javascript:x 2x">',
    '<svg><a xlink:href="javascript:x">x</a></svg>',
    '<svg><animate attributeName=href values="x;javascript:x">',
    '<svg><rect fill="url(javascript:x)">',
    "<svg/onload=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<img src=x\nonerror\n=\nalert(1)>",
    '<img src="x"onerror=alert(1)>',
    "<img/src/onerror=alert(1)//",
    "<img src=x onerror=alert(1)",
    '<img src=x onerror="alert(1)',
    "<img src=x onerror='alert(1)",
    "<p ONCLICK=x>",
    '<p style="background:url(javascript:x)">',
    "<p style=\"background:url( 'java\nscript:x')\">",
    '<p style="background:url(&quot;javascript:x&quot;)">',
    '<p style="width:expression(x)">',
    '<p style="width:exp/**/ression(x)">',
    '<p style="width:exp/*a*//*b*/ression(x)">',
    '<p style="width:e\\78 pression(x)">',
    '<p style="width:&bsol;65xpression&lpar;x)">',
    '<p style="background:u\\72l(j\\61vascript:x)">',
    "<style>p{background:url(javascript:x)}</style>",
    "<style>p{background:url(/*)} q{background:url(javascript:x)} r{background:url(*/)}",
    "<style>@import 'java\\\nscript:x'",
    "<svg><style>p{background:url(&#106;avascript:x)}",
    '<meta http-equiv="refresh" content="0;url=javascript:x">',
    '<meta http-equiv=" Refresh" content="0;url=java&Tab;script:x">',
    '<iframe srcdoc="&lt;p&gt;">',
    "<iframe><script>x</script></iframe>",
    "<iframe>" * 9 + "<p onclick=x>",
    "<template><script>x</script></template>",
    "<template><p><template><b onclick=x></template></template>",
    "<noscript><img onerror=x></noscript>",
    '<noscript><p title="</noscript><img onerror=x>"></noscript>',
    "<!--[if mso]><script>x</script><![endif]-->",
    "<!--[IF gte mso 9]><p onclick=x><![endif]-->",
]

OUTLOOK_BUTTON = """<!--[if mso]>
<v:rect href='https://example.com' style='behavior:url(#default#VML)'><w:anchorlock/></v:rect>
<![endif]-->"""

FULL_DOCUMENT = """<!doctype html>
<html lang=pt>
<head><title>javascript:</title><meta charset=utf-8>
<meta name="viewport" content="width=device-width">
<style>@media (max-width:600px){.a{width:100%!important}}</style></head>
<body bgcolor=#fff><table><tr><td>Olá</table></body>
</html>"""

HARMLESS = [
    "",
    "Bom dia",
    "<p>Never click on javascript: links, nor on data:text/html ones</p>",
    "<p>He wrote: onclick= and expression(x) and &lt;script&gt;</p>",
    '<a title="javascript: the good parts" href="https://example.com/?q=javascript:x">x</a>',
    '<img src="cid:logo" alt="data:text/html">',
    '<img src="data:image/png;base64,iVBORw0KGgo=">',
    '<p style="color:red/* expression */;margin:0">x</p>',
    '<meta name="description" content="javascript: an introduction">',
    "<style>/* image/* */ :root{color-scheme:light dark} a:hover{color:red}</style>",
    OUTLOOK_BUTTON,
    "<!--[if !mso]><!--><p>x</p><!--<![endif]-->",
    FULL_DOCUMENT,
    "<p>Section on=off</p><p>we go on </p>",
    "<br/on>",
]


@pytest.mark.parametrize("html", DANGEROUS)
def test_what_runs_is_found(html: str) -> None:
    """No disguise hides what a mail client would run."""
    assert find_danger(html) is not None


@pytest.mark.parametrize("html", HARMLESS)
def test_what_does_not_run_passes(html: str) -> None:
    """Words are not deeds: only elements, attributes and styles are judged."""
    assert find_danger(html) is None
    assert look_closely(html) is None


@pytest.mark.parametrize("html", DANGEROUS)
def test_danger_is_found_in_the_middle_of_a_document(html: str) -> None:
    """What stands before it does not matter, nor what follows."""
    assert find_danger(f"<!doctype html><body><p>Olá &eacute; <b>x</b>{html}\n<p>fim") is not None


def test_a_reason_repeats_no_content() -> None:
    """Names that the sender made up may hold anything, so they are not shown."""
    reason = find_danger("<ana@example.com onana@example.com=1>")

    assert reason is not None
    assert "ana" not in reason


_SIGNS = [
    "<",
    ">",
    "/",
    "=",
    '"',
    "'",
    "&",
    ";",
    ":",
    "\\",
    "/*",
    "*/",
    "(",
    "\x01",
    "\n",
    " ",
    "\xa0",
]
_STARTS = [
    "<a href=",
    "<p style='",
    "<style>",
    "<template>",
    "<iframe>",
    "<noscript>",
    "<!--[if x]>",
]
_ENDS = ["</style>", "</noscript>", "-->", "6a", "ression(", "ava", "script:", "html", "é"]
_PARTS = ["on", "java", "expression(", "data:text/html", "onclick=", "exp", "url(", "srcdoc=", "j"]
_ESCAPES = ["&#x", "\\6a ", "&Tab;", "&colon;", "&#58"]
_PIECES = st.sampled_from(
    [*DANGEROUS, *HARMLESS, *_SIGNS, *_STARTS, *_ENDS, *_PARTS, *_ESCAPES],
)
_MARKUP = st.lists(_PIECES | st.text(max_size=3), max_size=12).map("".join)


@settings(max_examples=500)
@given(_MARKUP)
@example("/* <p style='a:exp/**/ression(1)'>")
@example("<style>&#xexpression(1)</style>")
@example("<style>\\4A avascript:x</style>")
def test_what_spells_no_danger_has_none(html: str) -> None:
    """The quick look is only ever too careful: the parser finds nothing that it let pass."""
    if not spells_danger(html):
        assert look_closely(html) is None


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000,
        "<p " + " ".join(f"a{n}" for n in range(80_000)),
        "<iframe>" * 60_000,
        "<template>" * 50_000,
        "<!--[if" * 70_000,
        "<style>" + "e/*" * 20_000,
        "\\65 " * 100_000,
        "&#x6a;" * 80_000,
        'on"' * 170_000,
        " on" * 170_000,
    ],
)
@pytest.mark.timeout(10)
def test_hostile_documents_are_judged_in_time(html: str) -> None:
    """Markup made to keep a parser busy is seen through, or refused without a parse."""
    assert find_danger(html) is None
    assert find_danger(html + "</style><p onclick=x>") is not None


def test_a_large_document_that_spells_out_danger_is_refused() -> None:
    """What is too large to be parsed safely must not even mention what runs."""
    filler = "<p>Bom dia</p>" * 10_000

    assert find_danger(filler) is None
    assert find_danger(filler + "<a href='&#106;avascript:x'>") is not None
