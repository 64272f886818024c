"""HTML: active content is found in every disguise, and inactive content passes."""

import re
from pathlib import Path

import pytest
import selectolax.lexbor
from hypothesis import example, given, settings
from hypothesis import strategies as st

from carteiro.policy import html as judge
from carteiro.policy.active import MOST_COMMENTS, Judge
from carteiro.policy.html import (
    LARGEST_PARSED,
    MOST_BUILT,
    MOST_BUILT_CHARACTERS,
    MOST_PARSED_ATTRIBUTES,
    MOST_PARSED_TAGS,
    MOST_REPEATED,
    find_active,
    find_danger,
    look_closely,
    spells_danger,
)
from carteiro.policy.markup import MOST_ATTRIBUTES, MOST_STEPS, Reader

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

IMAGE = "<image src=x onerror=alert(1)>"
IMG = "<img src=x onerror=alert(1)>"

# Clients parse text differently: content that any of them runs is dangerous.
READ_DIFFERENTLY = [
    f"<table>{IMAGE}",
    f"<table><tr>{IMAGE}</tr></table>",
    f"<table><tbody>{IMAGE}",
    f"<table><colgroup>{IMAGE}",
    f"<select><style></select>{IMG}",
    f"<select><xmp></select>{IMG}",
    f"<select><title></select>{IMG}",
    f"<select><textarea></select>{IMG}",
    f"<select><plaintext></select>{IMG}",
    f"<select><noembed></select>{IMG}</noembed>",
    f"<svg><![CDATA[><p>]]>{IMG}",
    f"<svg><![CDATA[>{IMG}]]></svg>",
    f"<svg></p><style>{IMG}</style>",
    f"<svg></p><style><a title='</style>{IMG}'>",
    f"<math><mtext></p><style>{IMG}",
    f"<xmp>{IMG}</xmp>",
    f"<title>{IMG}</title>",
    f"<noscript><iframe><noembed><noframes>{IMG}",
    f"<!-- x --!>{IMG} -->",
    f"<!-->{IMG} -->",
    f"<!-- never closed {IMG}",
    f'<style><a title="</style>{IMG}">',
    f"<frameset><noframes></frameset>{IMG}",
    "<style>p{color:red}</style></p><svg><style>p{behavior:url(x.htc)}",
    "<svg><style>p{width:exp<!-- -->ression(1)}</style></svg>",
    "<svg><style>p{width:exp<g>ression(1)}</g></style></svg>",
    "<svg><style>p{width:exp<g>x</g>ression(1)}</style></svg>",
    "<svg><style><style><g>x</g>p{width:exp<g>x</g>ression(1)}</style></svg>",
    "<svg><style><style>x</style></style></svg><svg><style>p{width:exp<g>ression(1)}</g></style></svg>",
]

# Documents in frames, programs and elements that control the page.
LOADED = [
    '<iframe src="data:image/svg+xml,<svg/>">',
    '<iframe src=" DA\nTA:application/rss+xml,x">',
    '<iframe src="data:,x">',
    '<frame src="data:text/xsl,x">',
    '<object data="data:image/svg+xml;base64,PHN2Zy8+">',
    '<embed src="data:application/atom+xml,x">',
    '<object data="https://example.com/x.svg"></object>',
    '<object classid="clsid:0"></object>',
    '<embed src="https://example.com/x.swf">',
    '<applet code="X.class">',
    '<applet object="x.bin">',
    '<embed movie="https://example.com/x.swf">',
    '<embed type="text/html" pluginspage="https://example.com">',
    '<object type="text/html"><param name="src" value="https://example.com/x"></object>',
    '<object><param name="movie" value="https://example.com/x.swf"></object>',
    "<object><param value=https://example.com/x.html name=&#117;rl></object>",
    "<object type=image/png><param name=source value=x.xap></object>",
    "<applet mayscript><param name=archive value=https://example.com/x.jar></applet>",
    "<iframe src=cid:doc>",
    '<iframe src=" C&#105;D:doc@example.com">',
    '<iframe src="mid:x@example.com/doc">',
    '<iframe src="view-source:cid:doc">',
    '<frame src="cid:doc">',
    '<portal src="cid:doc">',
    '<svg><use href="cid:doc#x"></svg>',
    '<a href="data:image/svg+xml,x">x</a>',
    '<a href="data:application/rss+xml,x">x</a>',
    '<a href="data:text/xsl,x">x</a>',
    '<form action="data:model/x3d+xml,x">',
    '<svg><use href="data:image/svg+xml,x#y"></svg>',
    '<img srcset="x 1x, data:text/xml,y 2x">',
    '<meta http-equiv="refresh" content="0;url=https://example.com">',
    "<meta content=5 http-equiv=' ReFresh '>",
    '<meta http-equiv="&#114;efresh" content=5>',
    '<link rel="import" href="https://example.com/x.html">',
    "<link href=x rel='stylesheet &#73;mport'>",
    '<p style="behavior:url(x.htc)">',
    '<p style="behavior:url(#default#time2)">',
    '<p style="behavior: url(#default#VML) url(x.htc)">',
    "<style>p{-ms-behavior:url('https://example.com/x.htc')}</style>",
    "<style>p{beha\\76ior:url(x.htc)}</style>",
    '<p style="-moz-binding:url(https://example.com/x.xml#y)">',
]

# A comment for one engine is a string or a URL for another.
IN_PIECES = [
    '<style>a{content:"/*"} b{width:expr/**/ession(alert(1))}</style>',
    '<style>a{content:"/*"} b{width:expr/* /* */ession(alert(1))}</style>',
    '<style>a{content:"/*"} b{width:e/**/x/**//* */pression(alert(1))}</style>',
    "<p style=\"a:'/*';width:expr/**/ession(alert(1))\">",
    '<p style="background:url(/*);width:expr/**/ession(1)">',
    '<p style="background:url(/*);background:ur/**/l(java/**/script:x)">',
    '<p style="a:url(/*);-moz-/**/binding:url(x.xml#y)">',
    "<title><style>/*</title><style>x{width:expr/**/ession(1)}</style>",
    '<style>x{behavior :"}" url(x.htc)}</style>',
    "<style>x{behavior:';' url(x.htc)}</style>",
    "<style>x{behavior:'>' url(x.htc)}</style>",
    "<style>x{behavior:'/>' url(x.htc)}</style>",
    "<style>x{behavior:url(#default#VML)'>' url(x.htc)}</style>",
    '<style>x{behavior:"a=\'b" url(x.htc)}</style>',
    "<style>x{beha\\76ior:'>' url(x.htc)}",
    "<style>x{behavior:/*;*/url(x.htc)}</style>",
    "<style>x{behavior: url(#default#VML) /*;*/ url(x.htc)}</style>",
    "<style>x{behavior: a /*;*/ url(x.htc)}</style>",
    '<style>a{content:"/*"} x{beha/**/vior:url(x.htc)}</style>',
]

# The attributes that an animation sets.
ANIMATED = [
    '<svg><set attributeName="onmouseover" to="alert(1)"/></svg>',
    "<svg><animate attributeName=' ONCLICK' values='alert(1)'/></svg>",
    '<svg><animate values="alert(1)" attributeName = "&#111;nload"/></svg>',
    '<svg><set attributeName=href to="javascript:alert(1)"/></svg>',
    '<svg><animate attributeName=href from="javascript:x" to=y></svg>',
    '<svg><animate attributeName=href by="java&Tab;script:x"></svg>',
    '<svg><set attributeName=href to="data:image/svg+xml,x"></svg>',
    '<svg><animate attributeName=href values="a;data:image/svg+xml,x"></svg>',
]

# Some clients open the URL behind a scheme such as feed:, with any target.
WRAPPED = [
    '<a href="feed:javascript:x">x</a>',
    '<a href="feed:feed:javascript:x">x</a>',
    '<a href=" View-Source : java&Tab;script:x">x</a>',
    '<body background="feed:vbscript:x">',
    '<a href="view-source:data:text/html,x">x</a>',
    '<iframe src="feed:javascript:x">',
    '<iframe src="view-source:data:text/html,x">',
    '<iframe src="feed:data:,x">',
    '<svg><set attributeName=href to="feed:javascript:x"></svg>',
    '<svg><animate attributeName=href values="a;feed:data:,x"></svg>',
]

# Documents whose media type is missing, unknown or made of parts.
LINKED_DATA = [
    '<a href="data:,x">x</a>',
    "<a href=data:,x>x</a>",
    '<a href="data:;base64,eA==">x</a>',
    '<a href="data:&comma;x">x</a>',
    '<a href="da\nta :*/*,x">x</a>',
    '<a href="data:unknown/unknown,x">x</a>',
    '<a href="data:multipart/related,x">x</a>',
    '<a href="data:text/plain,x">x</a>',
    '<area href="data:,x">',
    '<form action="data:,x">',
    "<button formaction='data:,x'>",
    '<frame src="data:,x">',
    '<svg><a xlink:href="data:,x">x</a></svg>',
    '<svg><set attributeName=href to="data:,x"></svg>',
    '<svg><animate attributeName=href values="a; data:,x"></svg>',
]

DANGEROUS += [*WRAPPED, *LINKED_DATA, *IN_PIECES, *ANIMATED, *READ_DIFFERENTLY, *LOADED]

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
    f"<!-- {IMG} -->",
    f"<style>p{{color:red}}</style><table><!-- {IMG} --></table>",
    '<img src="data:image/svg+xml,x" srcset="data:image/svg+xml;base64,x 2x">',
    '<td background="data:image/svg+xml,x" style="background:url(data:image/svg+xml,x)">',
    '<svg><image href="data:image/svg+xml,x"/><use href="#a"/></svg>',
    '<iframe src="https://example.com/video"></iframe>',
    '<base href="https://example.com/" target="_blank">',
    '<meta http-equiv="Content-Type" content="text/html"><p>Press refresh</p>',
    '<link rel="stylesheet" href="https://example.com/x.css"> import \'import\' !important',
    "<style>html{scroll-behavior:smooth;background:url(x.png)}</style>",
    "<style>v\\:* {behavior:url(#default#VML)} p{background:url(x.png)}</style>",
    "<object></object><embed>",
    "<style>/* a */ v\\:* {behavior:url(#default#VML);} /* b */ o\\:* {behavior:url(#default#VML);} a/**/b{}</style>",
    "<style>html{scroll-behavior:smooth /* nice */;overscroll-behavior:contain none!important}</style>",
    "<style>a{behavior:url('#default#VML') !important /* x */}</style>",
    '<svg><animate attributeName="opacity" values="0;1"/><set attributeName=x to=1 /></svg>',
    '<a href="https://example.com/onboarding?utm_source=x">x</a>',
    "<p>Data: 10/10/2026, text/html</p>",
    '<a href="feed:https://example.com/x.xml">x</a><a href="mailto:ana@example.com?body=javascript:x">x</a>',
    '<a href="https://example.com/data:,x">x</a><a href="data:image/png;base64,x">x</a>',
    '<img src="data:,"><link rel="icon" href="data:,"><link rel="stylesheet" href="data:text/css,x">',
    '<svg><animate attributeName=href values="a;data:image/png,x"/></svg>',
    '<img src="cid:x"><a href="cid:x">x</a><iframe src="https://example.com/?id=cid:x"></iframe>',
    '<object type="image/png" width="9" data-x="y" style="color:red"><param name="x">x</object>',
]

MAILS = {file.stem: file.read_text("utf-8") for file in Path(__file__).parent.glob("mails/*.html")}


@pytest.mark.parametrize("html", DANGEROUS)
def test_active_content_is_found(html: str) -> None:
    """No disguise hides it."""
    assert find_danger(html) is not None


@pytest.mark.parametrize("html", HARMLESS)
def test_inactive_content_passes(html: str) -> None:
    """Text is harmless: only elements, attributes and styles are checked."""
    assert find_danger(html) is None
    assert look_closely(html) is None


@pytest.mark.parametrize("html", DANGEROUS)
def test_danger_is_found_in_the_middle_of_a_document(html: str) -> None:
    """With any text before and after it."""
    assert find_danger(f"<!doctype html><body><p>Olá &eacute; <b>x</b>{html}\n<p>fim") is not None


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<script></script>", "has a script element"),
        ("<style>p{width:expression(f())}</style>", "has active content in a style element"),
        ('<p onclick="f()">', "has active content in onclick of p"),
        ('<meta http-equiv="refresh" content="5">', "has a meta refresh"),
    ],
)
def test_reason_names_the_place(html: str, reason: str) -> None:
    """It is read after the name of the field: html has a script element."""
    assert find_danger(html) == reason


def test_reason_repeats_no_content() -> None:
    """Names chosen by the sender may hold anything, so they are not shown."""
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
_PARTS = [
    "on",
    "java",
    "expression(",
    "data:text/html",
    "data:,",
    "feed:",
    "onclick=",
    "exp",
    "url(",
    "srcdoc=",
    "j",
]
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
@example(f"<style>{OUTLOOK_BUTTON}")
@example("<style>x{behavior:<style>url(x.htc)}")
@example("<style>x{behavior:a</stylex>url(x.htc)}")
def test_quick_check_misses_nothing(html: str) -> None:
    """It is only ever too careful: the parser finds nothing in HTML that it let pass."""
    if not spells_danger(html):
        assert look_closely(html) is None


@pytest.mark.parametrize("name", MAILS)
def test_ordinary_mail_passes(name: str) -> None:
    """Outlook's own markup, nested tables, images, styles and text about scripts are harmless."""
    assert find_danger(MAILS[name]) is None
    assert look_closely(MAILS[name]) is None


@pytest.mark.parametrize("name", MAILS)
@pytest.mark.parametrize("part", ["<p onclick=x>", '<a href="java&Tab;script:x">', "<script>"])
def test_danger_is_found_anywhere_in_an_ordinary_mail(name: str, part: str) -> None:
    """Before and after each tag, unless a comment hides it there."""
    pieces = MAILS[name].split("<table")
    for index in range(1, len(pieces)):
        html = "<table".join(pieces[:index]) + part + "<table" + "<table".join(pieces[index:])
        assert find_danger(html) is not None


@pytest.mark.parametrize("name", ["outlook", "word_export"])
def test_common_mail_needs_only_the_quick_check(name: str) -> None:
    """It contains no active word, so its tags are never read."""
    assert not spells_danger(MAILS[name].replace("/onboarding", "/start"))


@settings(max_examples=200)
@given(st.sampled_from(["outlook", "word_export"]), st.data())
def test_damaged_mail_is_not_dangerous(name: str, data: st.DataObject) -> None:
    """A part is missing or moved: without an active word, no reading of it is active."""
    html = re.sub("on|behavior", "x", MAILS[name])  # a cut in "content" would make a handler of it
    start, end, to = sorted(
        data.draw(st.lists(st.integers(0, len(html)), min_size=3, max_size=3), label="places")
    )
    moved = data.draw(st.booleans(), label="moved")

    damaged = html[:start] + html[end:to] + (html[start:end] if moved else "") + html[to:]

    assert look_closely(damaged) is None


class Parsed:
    """The sources that Lexbor was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sources: list[str] = []
        monkeypatch.setattr(judge, "LexborHTMLParser", self._parse)

    def _parse(self, source: str) -> selectolax.lexbor.LexborHTMLParser:
        self.sources.append(source)
        return selectolax.lexbor.LexborHTMLParser(source)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Parsed:
    """The sources that Lexbor is given from here on."""
    return Parsed(monkeypatch)


@pytest.mark.parametrize(
    "html",
    [
        "<noscript><iframe><noembed><noframes>" * 5 + " onclick=",
        "<!--[if mso]><iframe><svg><![endif]-->" * 20 + " onclick=",
        "<template><select><svg><style>" * 9,
    ],
)
def test_source_is_never_parsed_twice(parsed: Parsed, html: str) -> None:
    """Neither for clients with scripting, nor for markup inside markup."""
    find_danger(html)

    assert [len(source) - len(html) for source in parsed.sources] == [len(" \"'>")]


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ("<svg>" + "x" * LARGEST_PARSED, "too large to be parsed"),
        ("<svg>" + "<b>" * MOST_PARSED_TAGS, "too large to be parsed"),
        ("<svg>" + "<b a b c d e>" * (MOST_PARSED_ATTRIBUTES // 5 + 1), "too large to be parsed"),
        ("<b " + "a " * (MOST_ATTRIBUTES + 1) + ">", f"more than {MOST_ATTRIBUTES} attributes"),
        ("<b>" * (MOST_STEPS + 1), f"more than {MOST_STEPS} tags"),
        ("<b a b c>" * (MOST_STEPS // 4 + 1), f"more than {MOST_STEPS} tags"),
        ("<!-- -->" * (MOST_STEPS + 1), f"more than {MOST_STEPS} tags"),
    ],
    ids=["size", "tags", "attributes", "of a tag", "all tags", "all attributes", "comments"],
)
def test_html_over_a_limit_is_refused_unparsed(parsed: Parsed, html: str, reason: str) -> None:
    """Each limit has its reason, and holds only for HTML with an active word."""
    told = find_danger(html + " onclick=")

    assert told is not None
    assert reason in told
    assert not parsed.sources
    assert find_danger(html) is None


def test_large_mail_that_mentions_danger_passes() -> None:
    """A link such as /onboarding?utm_source= is in many newsletters."""
    html = "<p>Bom dia</p>" * 10_000

    assert len(html) > LARGEST_PARSED
    assert find_danger(html + "<a href='/onboarding?x=1'>") is None
    assert find_danger(html + "<a href='&#106;avascript:x'>") is not None


@pytest.mark.parametrize("comment", ["a:a/**/b", "a:a/\\2a */b", "a:a&#47;**/b"])
def test_checked_comments_are_bounded(comment: str) -> None:
    """Each may begin anywhere, so their number bounds the work."""
    fits, exceeds = (
        "".join(f'<p style="{comment}{index}">' for index in range(count))
        for count in (MOST_COMMENTS, MOST_COMMENTS + 1)
    )

    assert find_danger(fits) is None
    assert "comments" in (find_danger(exceeds) or "")


def judged(html: str) -> int:
    """Number of checked characters of attributes and styles, if all are."""
    looker = Judge(html)
    assert find_active(html, Reader(html), looker) is None
    return looker.characters


COMMENTED = "a:b(/**/c "


@pytest.mark.parametrize(
    ("html", "once"),
    [
        (f'<p style="{COMMENTED}">' * 200, COMMENTED),
        (f'<a href="https://example.com/?{COMMENTED}">' * 200, f"https://example.com/?{COMMENTED}"),
        (f"<style>{COMMENTED}</style>" * 200, COMMENTED),
        (f"<svg><style>{COMMENTED}</style></svg>", COMMENTED),
        (f'<svg></svg><p><b style="{COMMENTED}">' + "<p>x" * 200, COMMENTED),
        (f'<svg></svg><p><b style="{COMMENTED}"><i><u>' + "<p>x" * 200, COMMENTED),
        (f"<p style='{COMMENTED}'><style>{COMMENTED}</style>" * 9, COMMENTED),
    ],
    ids=["styles", "links", "elements", "image", "formatting", "much formatting", "both"],
)
def test_equal_text_is_checked_once(html: str, once: str) -> None:
    """Neither a repetitive mail nor a parser that repeats formatting makes more work."""
    assert judged(html) == len(once)


@pytest.mark.parametrize(
    "unit", ["<style>{}:b(", "<style>{}:&lt;b ", "<style><g>{}:b(</g>", "<g><style>{}:\\61 "]
)
def test_nested_styles_cost_linear_work(unit: str) -> None:
    """In an image the text of each holds the text of all inside it."""
    few, many = (
        "<svg>" + "".join(unit.format(index) for index in range(100, 100 + count))
        for count in (60, 120)
    )

    assert judged(many) <= 2.1 * judged(few)


def test_readings_of_a_text_are_bounded() -> None:
    """Escaped or not, with the text of elements inside or without: each is another text."""
    css = "<g>x</g>".join(f"a{index}:&lt;{'x' * 1_000}" for index in range(50))

    told = find_danger(f"<svg><style>{css}")

    assert told is not None
    assert "repeats too much of its attributes and styles to be checked" in told


REPEATED = [
    "".join(f"<b a{index}=x>" for index in range(100)) + "<p>x" * 100,
    f"<b {' '.join(f'a{index}=x' for index in range(MOST_BUILT // 200))}>" + "<p>x" * 250,
    f'<b a="{"x" * (MOST_BUILT_CHARACTERS // 200)}">' + "<p>x" * 250,
]


@pytest.mark.parametrize("html", REPEATED, ids=["elements", "attributes", "characters"])
def test_endlessly_repeated_formatting_is_refused(parsed: Parsed, html: str) -> None:
    """A few tags become many elements, each of which would have to be checked."""
    told = find_danger(f"<svg></svg> onclick= <p>{html}")

    assert told is not None
    assert "too large to be parsed" in told
    assert parsed.sources


@pytest.mark.parametrize("end", ["<p>x", "</div>x", "<li>"])
def test_formatting_that_may_be_repeated_too_often_is_not_parsed(parsed: Parsed, end: str) -> None:
    """Lexbor would take a tenth of a second and hundreds of megabytes."""
    attributes = " ".join(f"a{index}" for index in range(250))
    tags = MOST_REPEATED // 250 // 4

    told = find_danger(f"<svg></svg> onclick= <p>{f'<b {attributes}>' * 4}" + end * tags)

    assert told is not None
    assert "too large to be parsed" in told
    assert not parsed.sources


ARTICLE = """<tr><td style="padding:{0}px 20px;font-family:Arial,sans-serif;background:url(https://img.example.com/{0}.png)">
<!--[if mso]><v:rect style="behavior:url(#default#VML);width:{0}px"><![endif]-->
<a href="https://example.com/onboarding?utm_source=x&amp;utm_medium=email&amp;id={0}" target="_blank">
<img src="cid:image{0}" alt="Promo&ccedil;&atilde;o {0}: only today" width="280" height="140" border="0"></a>
<p class="c{0}"><b>Ol&aacute;</b>, <i>veja</i> a promo&ccedil;&atilde;o &nbsp; n&ordm; {0}</p></td></tr>
"""
STYLES = "".join(
    f"/* card {index} */ .c{index} > a {{ color: #{index:06x}; content: '\\{index:x}' }}\n"
    for index in range(400)
)
ICON = '<svg viewBox="0 0 9 9"><style>.a{fill:url(#b)}</style><path class="a" d="M0 0"/></svg>'


@pytest.mark.parametrize(
    ("articles", "icon"), [(1, ICON), (30, ICON), (30, ""), (600, "")], ids=str
)
def test_ordinary_newsletter_of_any_size_passes(articles: int, icon: str) -> None:
    """Links with parameters, styles, conditional comments and icons stay within all limits."""
    rows = "".join(ARTICLE.format(index) for index in range(articles))
    html = (
        f"<html><head><style>{STYLES}</style></head><body>{icon}<table>{rows}</table></body></html>"
    )

    assert spells_danger(html)
    assert find_danger(html) is None


@pytest.mark.parametrize("html", ["<object \ud800", "<a href='javascript\ud800:'>", "\ud800srcdoc"])
def test_half_a_surrogate_pair_hides_nothing(html: str) -> None:
    """Rust's regex cannot read it, so such a text is searched word by word."""
    assert spells_danger(html) == spells_danger(html.replace("\ud800", "é"))
