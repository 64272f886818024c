"""Messages in a real browser: what needs a script."""

import pytest

from support.browser import Looker

pytestmark = [
    pytest.mark.servers,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]


async def test_search_is_completed_while_it_is_written(looker: Looker) -> None:
    """By the server, for the field of the last word; the list changes in its place."""
    page = await (await looker.signed_in("admin")).at("messages")
    await page.keyboard.press("/")
    await page.keyboard.type("status:fai")
    await page.wait_for_selector("#proposals option[value='status:failed']", state="attached")
    await page.keyboard.type("led")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/messages?q=status%3Afailed")
    assert "failed" in await page.locator(".chip").inner_text()
    assert await page.input_value("[name=q]") == "status:failed"


async def test_wait_is_counted_down(looker: Looker) -> None:
    """In the units of the page, each second."""
    page = await (await looker.signed_in("admin")).at("messages?q=external-id:segredo")
    await page.click("[data-row] a")
    await page.wait_for_selector("[data-until]")
    await page.evaluate(
        "document.querySelector('[data-until]').dataset.until = new Date(Date.now() + 3725000).toISOString()"
    )
    await page.locator("[data-until]", has_text="1 h 2 min").wait_for()


async def test_redrive_asks_first(looker: Looker) -> None:
    """In a dialog; no is no."""
    page = await (await looker.signed_in("admin")).at("messages?q=status:failed")
    await page.click("[data-row] a")
    await page.click("main >> text=Redrive >> nth=0")
    await page.click("#confirm button[value=no]")
    assert not await page.locator("#confirm").is_visible()
    assert await page.locator(".flash").count() == 0
