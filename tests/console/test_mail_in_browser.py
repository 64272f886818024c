"""Mails that try to escape their frame, in a real browser."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page

from carteiro.app import Carteiro
from support.browser import Looker
from support.http import a_client, opened, sent

pytestmark = [
    pytest.mark.servers,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]
# Each would change the page around it, leave the frame, ask a server, or read something.
ATTACKS = """
<script>window.top.document.title = "escaped"; parent.postMessage("escaped", "*")</script>
<img src=x onerror="top.document.title='escaped'">
<svg onload="top.document.title='escaped'"><script>top.document.title='escaped'</script></svg>
<svg><a xlink:href="javascript:top.document.title='escaped'"><text id=t y=20>text</text></a></svg>
<math><mtext><img src=x onerror="top.document.title='escaped'"></mtext></math>
<iframe srcdoc="<script>top.document.title='escaped'</script>"></iframe>
<iframe src="javascript:top.document.title='escaped'"></iframe>
<object data="data:text/html,<script>top.document.title='escaped'</script>"></object>
<embed src="{spy}/embed"><applet code="{spy}/applet"></applet>
<meta http-equiv="refresh" content="0;url={spy}/refresh">
<meta http-equiv="Content-Security-Policy" content="img-src *">
<meta http-equiv="set-cookie" content="carteiro=stolen">
<base href="{spy}/base/" target="_top">
<link rel="stylesheet" href="{spy}/style"><link rel="preconnect" href="{spy}">
<link rel="dns-prefetch" href="{spy}"><link rel="prefetch" href="{spy}/prefetch">
<link rel="preload" as="image" href="{spy}/preload"><link rel="modulepreload" href="{spy}/module">
<style>@import "{spy}/import"; @font-face {{ font-family: f; src: url({spy}/font) }}
body {{ font-family: f; background: url({spy}/background); cursor: url({spy}/cursor), auto }}
body::after {{ content: url({spy}/content) }}</style>
<img src="{spy}/image"><img srcset="{spy}/srcset 1x"><picture><source srcset="{spy}/source"><img></picture>
<video src="{spy}/video" poster="{spy}/poster" autoplay></video><audio src="{spy}/audio" autoplay></audio>
<input type="image" src="{spy}/input"><table background="{spy}/table"><tr><td>x</td></tr></table>
<svg><image href="{spy}/svg-image"/><use href="{spy}/use#a"/></svg>
<form id=f action="{spy}/form" method="post"><button id=send>Send</button></form>
<form action="/console/sign-out" method="post" target="_top"><button id=out>Out</button></form>
<a id=top href="{spy}/top" target="_top" ping="{spy}/ping">top</a>
<a id=self href="{spy}/self" target="_self">self</a>
<a id=blank href="{spy}/blank">blank</a>
<a id=script href="javascript:top.document.title='escaped'" target="_self">script</a>
<p id=seen style="color: rgb(1, 2, 3)">the mail</p>
"""


class Spy:
    """A server that notes who asks it; nobody should."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.address = ""

    async def note(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Note a connection, with the first line that it sends."""
        self.asked.append(await reader.readline())
        writer.close()


@asynccontextmanager
async def a_spy() -> AsyncIterator[Spy]:
    """A spy on a free port of loopback."""
    spy = Spy()
    server = await asyncio.start_server(spy.note, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    spy.address = f"http://{host}:{port}"
    async with server:
        yield spy


async def a_mail(looker: Looker, html: str) -> str:
    """The id of a new message with this HTML."""
    async with opened(looker.office.store) as post:
        return await _accepted(post, html)


async def _accepted(post: Carteiro, html: str) -> str:
    async with a_client(post) as client:
        accepted = await sent(client, html=html, scheduledAt="2199-01-01T00:00:00Z")
    return str(accepted["outboxId"])


async def in_frame(page: Page, selector: str) -> None:
    """Click something in the frame, whatever comes of it."""
    await (
        page.frame_locator("iframe.mail-frame")
        .locator(selector)
        .click(no_wait_after=True, force=True)
    )


async def test_mail_cannot_leave_its_frame_nor_ask_anybody(looker: Looker) -> None:
    """Scripts, redirects, links, forms, styles and pictures; its own styles are shown."""
    async with a_spy() as spy:
        mail = await a_mail(looker, ATTACKS.format(spy=spy.address))
        await looker.signed_in("admin")
        page = await looker.at(f"messages/{mail}")
        title, address = await page.title(), page.url
        seen = page.frame_locator("iframe.mail-frame").locator("#seen")
        await page.locator("iframe.mail-frame").scroll_into_view_if_needed()
        assert await seen.evaluate("each => getComputedStyle(each).color") == "rgb(1, 2, 3)"

        for each in ("send", "out", "top", "blank", "t", "script"):
            await in_frame(page, f"#{each}")
        await in_frame(page, "#self")
        await page.wait_for_timeout(300)

        assert (await page.title(), page.url) == (title, address)
        assert len(page.context.pages) == 1
        assert [
            each["name"] for each in await page.context.cookies() if "stolen" in str(each)
        ] == []
        await looker.at("audit")  # still signed in
        assert page.url.endswith("/audit")
        assert spy.asked == []
    looker.faults.clear()  # what was blocked was asked for here


async def test_frame_has_an_origin_of_its_own(looker: Looker) -> None:
    """It sees neither cookies nor the page around it; opened as a page, it is not there."""
    mail = await a_mail(looker, "<p id=seen>the mail</p>")
    await looker.signed_in("admin")
    page = await looker.at(f"messages/{mail}")
    await page.frame_locator("iframe.mail-frame").locator("#seen").wait_for()
    [frame] = [each for each in page.frames if each.url.endswith("/mail")]
    assert await frame.evaluate("window.origin") == "null"
    assert (
        await frame.evaluate(
            "(() => { try { return document.cookie } catch (error) { return error.name } })()"
        )
        == "SecurityError"
    )

    await looker.at(f"messages/{mail}/mail")
    assert page.url.endswith(f"/messages/{mail}")


async def test_remote_pictures_come_when_asked_for_and_over_https_alone(looker: Looker) -> None:
    """The policy of the frame names https then: a picture over http stays out."""
    async with a_spy() as spy:
        mail = await a_mail(looker, f"<img id=seen src='{spy.address}/image' alt=picture>")
        await looker.signed_in("admin")
        page = await looker.at(f"messages/{mail}")
        blocked = "Load remote images"
        await page.click(f"text={blocked}")
        await page.wait_for_selector("text=Hide remote images")
        assert "images=1" in page.url
        await page.frame_locator("iframe.mail-frame").locator("#seen").wait_for(state="attached")
        assert spy.asked == []
    looker.faults.clear()
