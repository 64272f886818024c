"""The page of providers: health, figures, order, and the verdict on an answer."""

from datetime import timedelta

from carteiro.app import Carteiro
from support.console import a_person
from support.http import a_client, sent
from support.library import work

HOSTILE = '<img src=x onerror="alert(1)">'


async def test_health_and_figures_of_providers(post: Carteiro) -> None:
    """An open circuit, the rate now and at most, sent and failed messages, and errors by code."""
    async with a_client(post) as client:
        await sent(client)
        await sent(client, to="bounce-550@sandbox.test")
    await work(post)
    rates = post.backend.rates
    minute = timedelta(minutes=1)
    await rates.draw("smtp", 1, process="a", stay=minute, ceiling=50.0)
    await rates.report("smtp", why=HOSTILE, wait=minute)

    async with a_person(post) as person:
        page = await person.page("providers")
        rows = page.split("<tr data-row>")
        [sandbox] = [each for each in rows if "<strong>sandbox</strong>" in each]
        [smtp] = [each for each in rows if "<strong>smtp</strong>" in each]
        assert "no. 1" in sandbox
        assert "550" in sandbox
        assert "mean" in sandbox
        assert "open" in smtp
        assert "of 50" in smtp
        assert HOSTILE not in (await person.get("providers")).text
        assert "24 hours" in await person.page("providers", range="24h")


async def test_answer_is_explained(post: Carteiro) -> None:
    """Its verdict, what follows from it and what history says; the same as the command line says."""
    async with a_person(post) as person:
        page = await person.page("providers", answer="550 5.1.1 No such user", stage="rcpt")
        assert "It becomes a dead letter at once." in page
        assert "at once: the mailbox does not exist" in page
        assert "No message that failed like this" in page
        page = await person.page("providers", answer="421 4.7.0 Try again later")
        assert "tried again" in page
        for text, fault in {
            "250 OK": "reports success",
            HOSTILE: "tried again",
        }.items():
            answer = await person.get("providers", params={"answer": text})
            assert fault in answer.text, text
            assert HOSTILE not in answer.text
        for asked, fault in (
            ({"provider": "nobody"}, "no such provider"),
            ({"provider": "resend", "stage": "rcpt"}, "Only answers of SMTP"),
        ):
            answer = await person.get("providers", params={"answer": "550", **asked})
            assert fault in answer.text
        assert (await person.get("providers", params={"answer": "5" * 9000})).status_code == 200
