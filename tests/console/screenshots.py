"""Take a picture of each page of the console, in each language, on a desk and on a phone: ``make screenshots``.

With ``--docs``: the pictures of the docs.
"""

import asyncio
import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from carteiro.console.words import LANGUAGES  # noqa: E402 - below the path
from support.browser import DESK, PHONE, a_browser, a_looker, an_office  # noqa: E402
from support.pictures import take_pictures  # noqa: E402

FOLDER = TESTS.parent / ".bench" / "screenshots"
SCREENS = {"desk": DESK, "phone": PHONE}


async def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with an_office() as office, a_browser() as browser:
        for language in LANGUAGES:
            for screen, viewport in SCREENS.items():
                options = {"locale": language, "viewport": viewport}
                async with a_looker(browser, office, **options) as looker:
                    await looker.signed_in("admin")
                    for path in office.pages:
                        page = await looker.at(path)
                        name = (
                            re.sub(r"[^a-z-]+", "-", path.partition("?")[0]).strip("-") or "start"
                        )
                        await page.screenshot(path=FOLDER / f"{name}.{language}.{screen}.png")
    print(f"written: {FOLDER}")


asyncio.run(take_pictures() if "--docs" in sys.argv else main())
