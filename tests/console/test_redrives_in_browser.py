"""A redrive in a browser: its page follows it, and offers what can still be done."""

import pytest
from playwright.async_api import expect

from support.browser import Looker

pytestmark = [
    pytest.mark.servers,
    pytest.mark.xdist_group("browser"),
    pytest.mark.asyncio(loop_scope="session"),
]


async def test_page_of_a_redrive_follows_it(looker: Looker) -> None:
    """Resumed, it ends by itself: the open page shows that without being loaded again, and its buttons are gone."""
    page = await (await looker.signed_in("operator")).at("redrives")
    await page.click("[data-row] a")
    resume, cancel = (
        page.get_by_role("button", name="Resume"),
        page.get_by_text("Cancel the redrive"),
    )
    await expect(resume).to_be_visible()
    await expect(cancel).to_be_visible()
    await expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    await resume.click()

    await expect(page.locator('[data-state="finished"]')).to_be_visible(timeout=30_000)
    await expect(resume).to_be_hidden()
    await expect(cancel).to_be_hidden()
