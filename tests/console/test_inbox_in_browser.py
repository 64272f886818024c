"""The inbox of the sandbox in a real browser: live, at both widths, and downloads that open nowhere."""

import asyncio
import base64
from pathlib import Path

import orjson
import pytest

from carteiro.model import MessageId
from support.browser import Looker
from support.http import an_email, opened
from support.inbox import a_mail

pytestmark = [
    pytest.mark.servers,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]
HOSTILE = "<script>top.document.title = 'escaped'</script>"


async def delivered(looker: Looker, subject: str) -> None:
    """A mail that another process put into the inbox."""
    file = {"filename": "a.html", "contentType": "text/html"}
    content = base64.b64encode(HOSTILE.encode()).decode()
    html = f"{HOSTILE}<p id=seen>the mail</p>"
    email = an_email(subject=subject, html=html, attachments=[file | {"content": content}])
    mail = a_mail(MessageId(subject), subject=subject, content=orjson.dumps(email).decode())
    async with opened(looker.office.store) as post:
        await post.backend.inbox.keep([mail])


async def test_list_of_a_chosen_tenant_goes_on_living(looker: Looker) -> None:
    """Also when the tenant was chosen without a reload."""
    await looker.signed_in("admin")
    page = await looker.at("inbox")
    await page.fill("[name=tenant]", "acme")
    await page.click("main form.filters button")
    await page.wait_for_selector(".chip")
    await delivered(looker, "Another mail")
    await page.wait_for_selector("text=Another mail")


async def test_mail_appears_opens_and_is_deleted(looker: Looker) -> None:
    """Without a reload; its frame has the width of a phone on request; its file is saved, not shown."""
    await looker.signed_in("acme")
    page = await looker.at("inbox")
    assert "Live mail" not in await page.inner_text("main")
    await delivered(looker, "Live mail")
    await page.click("text=Live mail")
    await page.wait_for_url("**/inbox/Live%20mail")

    frame = page.frame_locator("iframe.mail-frame")
    await frame.locator("#seen").wait_for()
    wide = await frame.locator("html").evaluate("document.documentElement.clientWidth")
    await page.click("text=Phone width")
    await page.wait_for_selector("iframe.mail-frame.narrow")
    await frame.locator("#seen").wait_for()
    assert await frame.locator("html").evaluate("document.documentElement.clientWidth") <= 375
    assert wide > 375

    async with page.expect_download() as saved:
        await page.click("text=a.html")
    file = await saved.value
    assert file.suggested_filename == "a.html"
    content = await asyncio.to_thread(Path(await file.path()).read_bytes)
    assert content.decode() == HOSTILE
    assert "escaped" not in await page.title()

    await page.click("main button.danger")
    await page.click("#confirm [value=yes]")
    await page.wait_for_selector("text=The mail was deleted.")
    assert "Live mail" not in await page.inner_text("#list")
    looker.faults.clear()  # the script in the mail was blocked
