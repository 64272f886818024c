"""Take the pictures of the docs, of a console with traffic: ``make screenshots ARGS=--docs``."""

import asyncio
import json
import math
import random
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from playwright.async_api import Page

from support.browser import Looker, Office, a_browser, a_looker
from support.commands import environment_of_a_command
from support.running import Running, up
from support.services import a_folder
from support.small_png import make_small

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "docs" / "pictures"
SCREEN = {"width": 1000, "height": 640}
_SECONDS = 30
_MINUTE_MS = 60_000
_MINUTES = 60
_MAIL = {
    "to": "ana@example.com",
    "from": "orders@acme.example",
    "subject": "Your order 4711 is on its way",
    "tags": ["order"],
    "html": '<div style="font-family:sans-serif;max-width:420px">'
    '<h2 style="color:#2450b8;margin-bottom:4px">On its way</h2>'
    "<p>Hello Ana, your order <b>4711</b> left our warehouse today.</p>"
    '<table style="border-collapse:collapse;width:100%">'
    '<tr style="border-bottom:1px solid #ddd"><td>Coffee, 1 kg</td><td align="right">18.90</td></tr>'
    '<tr><td>Delivery</td><td align="right">4.00</td></tr></table>'
    '<p><a href="https://acme.example/orders/4711">Follow your order</a></p></div>',
    "text": "Hello Ana, your order 4711 left our warehouse today.",
}


async def take_pictures() -> None:
    """Play some traffic, and take them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with a_folder("pictures", ours=True) as folder:
        async with up(folder) as running, a_browser() as browser:
            async with running.client() as client:
                (await client.post("/v1/email/send", json=_MAIL)).raise_for_status()
            await _play(running, folder)
            _lengthen(folder / "carteiro.db")
            office = Office(running.address, "", (), "")
            for language, name in (("en-US", ""), ("pt-BR", ".pt")):
                async with a_looker(browser, office, viewport=SCREEN, locale=language) as looker:
                    await looker.signed_in(running.keys[1].removeprefix("ca_"))
                    await _shot(await looker.at(), f"overview{name}")
                    if language == "en-US":
                        await _others(looker)


async def _others(looker: Looker) -> None:
    page = await looker.at("messages?q=status:failed to:throttle-4@sandbox.test")
    await page.click("tbody a")
    await page.wait_for_selector(".timeline")
    await _shot(page, "message")
    page = await looker.at("inbox?to=ana@example.com")
    await page.click("tbody a")
    await page.wait_for_selector("#mail")
    await page.frame_locator(".mail-frame").locator("h2").wait_for()
    await _shot(page, "inbox")
    page = await looker.at(
        "redrives/plan?text=throttle-4&canary=3&firstRatePerSecond=1&maxRatePerSecond=1"
    )
    await page.click("main .card button")
    await page.click("#confirm [value=yes]")
    await page.wait_for_selector('[data-state="running"]:has-text("a second")', timeout=30_000)
    await page.wait_for_timeout(4000)
    await _shot(page, "redrive")


async def _shot(page: Page, name: str) -> None:
    file = FOLDER / f"{name}.png"
    await page.screenshot(path=file)
    make_small(file)


async def _play(running: Running, folder: Path) -> None:
    """Some traffic of the demonstration; it is cut off before it redrives what failed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, REPOSITORY / "demo" / "play.py"),
        *("--seconds", str(_SECONDS), "--url", running.address),
        cwd=folder,
        env=environment_of_a_command(),
    )
    try:
        await asyncio.wait_for(process.wait(), _SECONDS - 1)
    except TimeoutError:
        process.kill()
        await process.wait()
    await asyncio.sleep(11)  # until upkeep has added up the figures


def _lengthen(database: Path) -> None:
    """The same traffic in the whole hour: charts of one minute show nothing."""
    chance = random.Random(7)
    connection = sqlite3.connect(database, timeout=10)
    with connection:
        sums: dict[tuple[Any, ...], Counter[str]] = {}
        asked = "SELECT tenant, template, provider, weight, sent, failed, figures, at FROM rollups"
        rows = connection.execute(f"{asked} WHERE span = 'minute'").fetchall()
        last = max(row[-1] for row in rows)
        for *key, _, _, _, figures, _ in rows:
            sums.setdefault(tuple(key), Counter()).update(json.loads(figures))
        for back in range(_MINUTES):
            scale = 0.6 + 0.25 * math.sin(back / 7) + 0.15 * chance.random()
            for key, whole in sums.items():
                figures = {name: round(number * scale) for name, number in whole.items()}
                numbers = [figures.get(name, 0) for name in ("accepted", "sent", "failed")]
                connection.execute(
                    "INSERT OR REPLACE INTO rollups VALUES ('minute', ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*key, last - back * _MINUTE_MS, *numbers, json.dumps(figures)),
                )
    connection.close()
