"""The console in a real browser: every page as every kind of viewer, with keys, on a phone, with live parts."""

from typing import Any

import pytest
from playwright.async_api import Browser

from support.browser import PHONE, VIEWERS, Looker, Office, a_looker

# One browser and one process for all of them: they stay together when tests run in parallel.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest.mark.parametrize("viewer", VIEWERS)
async def test_every_page_has_no_barrier_and_no_fault(
    browser: Browser, office: Office, viewer: str
) -> None:
    """On a desk and on a phone of 360 pixels, in light and dark, in both languages; names, focus and contrast.

    The script of axe is put into the page from outside, past its policy; nothing else is.
    """
    ways: dict[str, dict[str, Any]] = {
        "desk": {"locale": "en-US", "color_scheme": "light"},
        "phone": {"locale": "pt-BR", "color_scheme": "dark", "viewport": PHONE},
    }
    for name, options in ways.items():
        async with a_looker(browser, office, bypass_csp=True, **options) as looker:
            pages = [*office.pages, "nothing-here"]
            await looker.at("sign-in")
            assert await looker.barriers() == []
            await looker.signed_in(viewer)
            for path in pages:
                await looker.at(path)
                assert await looker.barriers() == [], (name, path)
                assert await looker.overflow() == 0, (name, path)


async def test_every_page_keeps_to_its_own_policy(looker: Looker) -> None:
    """Nothing is blocked on any page: whatever it needs, the policy allows."""
    await looker.signed_in("admin")
    for path in looker.office.pages:
        await looker.at(path)


async def test_link_of_this_machine_signs_in_once(browser: Browser, looker: Looker) -> None:
    """And leaves no way back in the history."""
    page = await looker.at(looker.office.link)
    await page.click("main button")
    await page.wait_for_url("**/console/")
    await page.go_back()
    assert await page.locator("h1").inner_text() in {"This link is over", "Overview"}
    async with a_looker(browser, looker.office) as other:
        page = await other.at(looker.office.link)
        assert await page.locator("h1").inner_text() == "This link is over"


async def test_scripts_cannot_read_the_cookie_and_pages_cannot_be_framed(looker: Looker) -> None:
    """Nor does code in a page run that is not a file of ours."""
    await looker.signed_in("admin")
    page = await looker.at("audit")

    assert "carteiro=" not in await page.evaluate("document.cookie")
    await page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = true'>");
    }""")
    await page.wait_for_timeout(100)
    assert await page.evaluate("window.ran === undefined")
    looker.faults.clear()  # what was blocked was asked for here


async def test_keys_search_move_open_and_explain(looker: Looker) -> None:
    """And do nothing while somebody types."""
    page = await (await looker.signed_in("admin")).at("audit")

    await page.keyboard.press("/")
    assert await page.evaluate("document.activeElement.name") == "who"
    await page.keyboard.type("j/?k")
    assert await page.input_value("[name=who]") == "j/?k"
    await page.fill("[name=who]", "")
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    assert (
        await page.evaluate(
            "[...document.querySelectorAll('[data-row]')].indexOf(document.activeElement)"
        )
        == 0
    )
    await page.keyboard.press("?")
    assert await page.locator("#keys").is_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/audit?who=*")


async def test_filters_change_a_part_of_the_page_and_its_address(looker: Looker) -> None:
    """The same address shows the same when it is opened; and going back goes back."""
    page = await (await looker.signed_in("admin")).at("audit")
    await page.evaluate("window.stays = true")
    await page.fill("[name=action]", "sign-in")
    await page.click("main form button")
    await page.wait_for_url("**/audit?action=sign-in")
    await page.wait_for_selector(".chip")

    assert await page.evaluate("window.stays")
    await page.go_back()
    await page.wait_for_url("**/audit")
    await page.wait_for_selector(".chip", state="detached")


async def test_change_is_seen_by_another_browser_at_once(browser: Browser, looker: Looker) -> None:
    """Two viewers at once: what one does, the other sees without loading the page again."""
    page = await (await looker.signed_in("viewer")).at("audit")
    await page.wait_for_selector(".live strong")
    async with a_looker(browser, looker.office) as other:
        await other.signed_in("acme")
        await page.wait_for_selector(".live:has-text('sign-in'):has-text('acme')")


async def test_times_are_in_the_zone_of_the_browser(browser: Browser, office: Office) -> None:
    """From the first page after the sign-in on; the exact time is a tooltip."""
    async with a_looker(browser, office, timezone_id="Asia/Kolkata") as looker:
        page = await (await looker.signed_in("viewer")).at("audit")
        assert "+05:30 (IST)" in (await page.locator("td time").first.get_attribute("title") or "")


async def test_theme_is_a_choice(looker: Looker) -> None:
    """By system until somebody chooses."""
    page = await (await looker.signed_in("viewer")).at("audit")
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    light = await page.evaluate(colour)
    await page.click(".account summary")
    await page.select_option("[name=theme]", "dark")
    await page.click(".panel button")
    await page.wait_for_selector("html[data-theme=dark]")

    assert await page.evaluate(colour) != light
    assert page.url.endswith("/console/audit")
