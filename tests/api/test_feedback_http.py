"""Feedback over HTTP: only an authenticated provider changes anything."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.errors import ConfigError
from carteiro.model import DeadReason, EventType, MessageId, Sent
from carteiro.providers.ses.sns_certificates import MOST_AT_ONCE
from support.builders import ACME, dead
from support.http import a_client, a_client_of, answer_in, error_in, opened, sent
from support.resend_webhooks import a_secret, an_event, signed
from support.sns import CERTIFICATE_URL, TOPIC, SnsTwin, a_ses_bounce, a_ses_event
from support.steps import claimed_and_declared, settled
from support.working import logged

SECRET = a_secret()
SES, RESEND = "/v1/feedback/ses", "/v1/feedback/resend"
OF_SNS = {"x-amz-sns-topic-arn": TOPIC}


@pytest.fixture
def sns() -> SnsTwin:
    """An SNS twin for this test."""
    return SnsTwin()


@pytest.fixture
async def post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Carteiro]:
    """An app that accepts feedback of both providers."""
    monkeypatch.setenv("RESEND_WEBHOOK_SECRET", SECRET)
    settings = {
        "feedback": {"ses_topics": TOPIC, "resend_secret": "env:RESEND_WEBHOOK_SECRET"},
        "delivery": {"call_limit_ms": 200},
    }
    async with opened(f"sqlite:///{tmp_path}/carteiro.db", **settings) as office:
        yield office


@asynccontextmanager
async def hearing(post: Carteiro, sns: SnsTwin) -> AsyncIterator[httpx.AsyncClient]:
    """A client without any key."""
    async with a_client_of(create_api(post, fetch=sns.fetch), key=None) as client:
        yield client


@pytest.fixture
async def client(post: Carteiro, sns: SnsTwin) -> AsyncIterator[httpx.AsyncClient]:
    """The client that reports."""
    async with hearing(post, sns) as opened_client:
        yield opened_client


@pytest.fixture
async def message(post: Carteiro) -> MessageId:
    """An e-mail sent through a relay; the provider behind it reports."""
    async with a_client(post) as tenant:
        answer = await sent(tenant, to="ana@example.com")
    job = await claimed_and_declared(post.backend.store, provider="smtp")
    await settled(post.backend.store, job, Sent("smtp", "1"))
    return MessageId(answer["outboxId"])


async def types(post: Carteiro, message: MessageId) -> list[EventType]:
    """Feedback events on its timeline."""
    events = await post.backend.reading.events(message)
    return [event.type for event in events if "eventId" in event.metadata]


async def told(client: httpx.AsyncClient, document: Any) -> httpx.Response:
    """A request as SNS posts it."""
    headers = {"Content-Type": "text/plain; charset=UTF-8"} | OF_SNS
    return await client.post(SES, content=orjson.dumps(document), headers=headers)


# --- SES ----------------------------------------------------------------------------------------


async def test_ses_event_is_on_the_timeline_once(
    post: Carteiro, client: httpx.AsyncClient, sns: SnsTwin, message: MessageId
) -> None:
    """A repeat is known, also from another topic; the certificate is fetched once."""
    first = await told(client, sns.notification(a_ses_event(message)))
    again = await told(client, sns.notification(a_ses_event(message)))

    assert answer_in(first) == {"result": "noted"}
    assert answer_in(again) == {"result": "known"}
    assert await types(post, message) == [EventType.DELIVERED]
    assert sns.fetched == [CERTIFICATE_URL]


async def test_permanent_bounce_suppresses_the_address(
    post: Carteiro, client: httpx.AsyncClient, sns: SnsTwin, message: MessageId
) -> None:
    """The tenant sees both."""
    answer_in(await told(client, sns.notification(a_ses_bounce(message))))

    async with a_client(post) as tenant:
        shown = answer_in(await tenant.get(f"/v1/emails/{message}"))
        [listed] = answer_in(await tenant.get("/v1/suppressions"))["items"]
    assert shown["deliveryStatus"] == "BOUNCED"
    assert (listed["email"], listed["reason"]) == ("ana@example.com", "hard_bounce")


async def test_event_of_another_sender_is_answered_and_counted(
    post: Carteiro, client: httpx.AsyncClient, sns: SnsTwin
) -> None:
    """SNS would repeat it otherwise."""
    strange: list[object] = [
        a_ses_event(MessageId("018cc251-f400-7000-8000-000000000002")),
        {"notificationType": "AmazonSnsSubscriptionSucceeded"},
        "Successfully validated SNS topic for Amazon SES event publishing.",
        [],
    ]

    answers = [await told(client, sns.notification(each)) for each in strange]

    assert [answer_in(each) for each in answers] == [{"result": "unknown"}] * 4
    assert post.tally.feedback == {
        ("ses", "DELIVERED", "unknown"): 1,
        ("ses", "other", "unknown"): 3,
    }


PEM = CERTIFICATE_URL.rpartition("/")[2]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"TopicArn": "arn:aws:sns:sa-east-1:123456789012:another"}, 403),
        ({"Message": "{}"}, 401),
        ({"Signature": "AAAA"}, 401),
        ({"Signature": "?"}, 401),
        ({"SignatureVersion": "1"}, 401),
        ({"Type": "Another"}, 401),
        ({"SigningCertURL": f"http://sns.sa-east-1.amazonaws.com/{PEM}"}, 401),
        ({"SigningCertURL": f"https://sns.us-east-1.amazonaws.com/{PEM}"}, 401),
        ({"SigningCertURL": f"https://sns.sa-east-1.amazonaws.com.attacker.example/{PEM}"}, 401),
        ({"SigningCertURL": f"https://sns.sa-east-1.amazonaws.com@attacker.example/{PEM}"}, 401),
        ({"SigningCertURL": f"https://sns.sa-east-1.amazonaws.com:8443/{PEM}"}, 401),
        ({"SigningCertURL": "https://sns.sa-east-1.amazonaws.com/a.txt"}, 401),
        ({"SigningCertURL": "https://sns.sa-east-1.amazonaws.com/a?b=.pem"}, 401),
        ({"SigningCertURL": f"https://[sns/{PEM}"}, 401),
        ({"SigningCertURL": "https://sns.sa-east-1.amazonaws.com/a b.pem"}, 401),
        ({"SigningCertURL": "https://sns.sa-east-1.amazonaws.com/missing.pem"}, 401),
        ({"SigningCertURL": CERTIFICATE_URL.replace("-1.pem", "-404.pem")}, 401),
    ],
)
async def test_event_not_signed_by_sns_changes_nothing(
    post: Carteiro,
    client: httpx.AsyncClient,
    sns: SnsTwin,
    message: MessageId,
    changes: dict[str, str],
    status: int,
) -> None:
    """Another topic, another text, another certificate; only certificates of SNS are fetched."""
    answer = await told(client, sns.notification(a_ses_bounce(message), **changes))

    codes = {401: "UNAUTHORIZED", 403: "FORBIDDEN"}
    error_in(answer, status, codes[status])
    assert await types(post, message) == []
    assert await post.backend.suppressions.find(["ana@example.com"], tenant=ACME) == []
    places = {httpx.URL(each).host for each in sns.fetched}
    assert places <= {"sns.sa-east-1.amazonaws.com"}


@pytest.mark.parametrize(
    "name", ["a.pem", "SimpleNotificationService-.pem", "SimpleNotificationService-xyz.pem"]
)
async def test_certificate_under_a_name_that_sns_never_uses_is_not_fetched(
    client: httpx.AsyncClient, sns: SnsTwin, message: MessageId, name: str
) -> None:
    """Forged names do not use up the limit of others."""
    url = CERTIFICATE_URL.replace(PEM, name)
    answer = await told(client, sns.notification(a_ses_event(message), SigningCertURL=url))

    error_in(answer, 401, "UNAUTHORIZED")
    assert sns.fetched == []


async def test_expired_certificate_is_refused(post: Carteiro, message: MessageId) -> None:
    """Also with a correct signature."""
    old = SnsTwin(valid_for=-timedelta(days=1))
    async with hearing(post, old) as client:
        answer = await told(client, old.notification(a_ses_bounce(message)))

    error_in(answer, 401, "UNAUTHORIZED")
    assert await types(post, message) == []


async def test_subscription_is_confirmed_at_sns(client: httpx.AsyncClient, sns: SnsTwin) -> None:
    """At the address of the topic's region, never at the one in the message."""
    answer = await told(client, sns.confirmation())

    asked = httpx.URL(sns.fetched[-1])
    assert answer_in(answer) == {"result": "confirmed"}
    assert (asked.scheme, asked.host, asked.path) == ("https", "sns.sa-east-1.amazonaws.com", "/")
    assert asked.params["TopicArn"] == TOPIC
    assert asked.params["Token"] == "a-token"
    assert len(sns.fetched) == 2


@pytest.mark.parametrize("changes", [{"Token": "another"}, {"SubscribeURL": "https://a.example"}])
async def test_forged_confirmation_is_ignored(
    client: httpx.AsyncClient, sns: SnsTwin, changes: dict[str, str]
) -> None:
    """Token and address are signed, too."""
    answer = await told(client, sns.confirmation(**changes))

    error_in(answer, 401, "UNAUTHORIZED")
    assert sns.fetched == [CERTIFICATE_URL]


async def test_unreachable_sns_asks_for_a_retry(
    client: httpx.AsyncClient, sns: SnsTwin, message: MessageId
) -> None:
    """The certificate, or the confirmation, cannot be fetched now."""
    sns.is_away = True
    first = await told(client, sns.notification(a_ses_event(message)))
    sns.is_away = False
    answer_in(await told(client, sns.notification(a_ses_event(message))))
    sns.is_away = True
    confirmation = await told(client, sns.confirmation())

    assert (first.status_code, confirmation.status_code) == (503, 503)


async def test_forged_certificates_do_not_delay_events_of_sns(
    post: Carteiro, sns: SnsTwin, message: MessageId
) -> None:
    """During a flood of forged, slow names, known and unknown certificates get through."""
    forged = asyncio.Event()

    async def fetch(url: str) -> bytes:
        if "-f0f" in url:
            await forged.wait()
        return await sns.fetch(url)

    def a_forged(n: int) -> dict[str, Any]:
        url = CERTIFICATE_URL.replace("Service-1", f"Service-f0f{n:04}")
        return sns.notification(a_ses_bounce(message), SigningCertURL=url)

    async with a_client_of(create_api(post, fetch=fetch), key=None) as client:
        flood = [asyncio.create_task(told(client, a_forged(n))) for n in range(200)]
        await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
        held_up = await told(client, sns.notification(a_ses_event(message)))
        forged.set()
        statuses = [answer.status_code for answer in await asyncio.gather(*flood)]
        again = await told(client, sns.notification(a_ses_event(message)))
        forged.clear()
        second = [asyncio.create_task(told(client, a_forged(n))) for n in range(200, 400)]
        await asyncio.wait(second, return_when=asyncio.FIRST_COMPLETED)
        known = await told(client, sns.notification(a_ses_event(message)))
        forged.set()
        await asyncio.gather(*second)

    assert held_up.status_code == 503  # at once, so that SNS retries: there is no queue to wait in
    assert (statuses.count(401), statuses.count(503)) == (MOST_AT_ONCE, 200 - MOST_AT_ONCE)
    assert (answer_in(again)["result"], answer_in(known)["result"]) == ("noted", "known")
    assert sum("-f0f" in url for url in sns.fetched) == 2 * MOST_AT_ONCE
    assert await types(post, message) == [EventType.DELIVERED]


async def test_end_of_a_subscription_changes_nothing(
    client: httpx.AsyncClient, sns: SnsTwin
) -> None:
    """There is no automatic new subscription."""
    over = sns.confirmation() | {"Type": "UnsubscribeConfirmation"}
    over = sns.signed({name: each for name, each in over.items() if name != "Signature"})

    answer = await told(client, over)

    assert answer_in(answer) == {"result": "unknown"}
    assert sns.fetched == [CERTIFICATE_URL]


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"Type":7}'])
async def test_malformed_message_of_sns_is_400(client: httpx.AsyncClient, body: bytes) -> None:
    """The answer says what is missing."""
    answer = await client.post(SES, content=body, headers=OF_SNS)

    assert answer.status_code in {400, 422}


async def test_body_over_the_limit_is_not_read(client: httpx.AsyncClient) -> None:
    """At either endpoint; SNS publishes at most 256 KiB, and escapes the quotes in them."""
    for path, most in ((SES, 512 * 1024), (RESEND, 1024 * 1024)):
        body = b"x" * (most + 1)
        headers = OF_SNS if path == SES else signed(body, SECRET)
        answer = await client.post(path, content=body, headers=headers)
        error_in(answer, 413, "REQUEST_TOO_LARGE")


@pytest.mark.parametrize("path", [SES, RESEND])
async def test_event_with_very_many_members_is_not_parsed(
    client: httpx.AsyncClient, path: str
) -> None:
    """The end of the body is cut off, which only a parser would notice."""
    body = b'{"z":1' + b',"z":1' * 2000

    answer = await client.post(
        path, content=body, headers=OF_SNS if path == SES else signed(body, SECRET)
    )

    assert "at most 1000 names and texts" in answer.text


async def test_largest_message_of_sns_is_heard(client: httpx.AsyncClient, sns: SnsTwin) -> None:
    """Half of it is escaped; the names in its text do not count as members."""
    event = {"eventType": "Delivery", "mail": {str(number): "" for number in range(20_000)}}
    told = orjson.dumps(sns.notification(event))
    assert 256 * 1024 < len(told) <= 512 * 1024

    answer = await client.post(SES, content=told, headers=OF_SNS)

    assert answer_in(answer) == {"result": "unknown"}


# --- Resend -------------------------------------------------------------------------------------


async def test_resend_event_is_on_the_timeline_once(
    post: Carteiro, client: httpx.AsyncClient, message: MessageId
) -> None:
    """Known by the id of the webhook, also with a new signature."""
    body = an_event(message)
    answers = [
        await client.post(RESEND, content=body, headers=signed(body, SECRET, at=time.time() - wait))
        for wait in (0, 60, 0)
    ]

    assert [answer_in(each)["result"] for each in answers] == ["noted", "known", "known"]
    assert await types(post, message) == [EventType.DELIVERED]
    assert post.tally.feedback["resend", "DELIVERED", "known"] == 2


async def test_several_signatures_may_be_given(
    client: httpx.AsyncClient, message: MessageId
) -> None:
    """One valid signature is enough; other versions are ignored."""
    body = an_event(message)
    headers = signed(body, SECRET)
    right = headers["svix-signature"]
    headers["svix-signature"] = f"v1a,AAAA v1,AAAA {right}"

    assert answer_in(await client.post(RESEND, content=body, headers=headers))["result"] == "noted"


async def test_standard_webhook_headers_are_accepted(
    client: httpx.AsyncClient, message: MessageId
) -> None:
    """``webhook-id`` instead of ``svix-id``."""
    body = an_event(message)
    headers = {name.replace("svix", "webhook"): each for name, each in signed(body, SECRET).items()}

    assert answer_in(await client.post(RESEND, content=body, headers=headers))["result"] == "noted"


EVENT = an_event(MessageId("m"))


def but(**others: str | None) -> dict[str, str]:
    """The headers of an event signed now, with these changes."""
    headers = signed(EVENT, SECRET) | {f"svix-{name}": text for name, text in others.items()}
    return {name: text for name, text in headers.items() if text is not None}


# Made when they are sent: a signature is valid for minutes, and all tests together take longer.
@pytest.mark.parametrize(
    "headers",
    [
        dict[str, str],
        lambda: but(id=None),
        lambda: but(timestamp=None),
        lambda: but(signature=None),
        lambda: signed(EVENT, a_secret()),
        lambda: signed(b"another body", SECRET),
        lambda: but(id="msg_2"),
        lambda: but(timestamp="1700000000"),
        lambda: but(timestamp="soon"),
        lambda: but(signature="v1"),
        lambda: signed(EVENT, SECRET, at=time.time() - 301),
        lambda: signed(EVENT, SECRET, at=time.time() + 1000),
    ],
)
async def test_event_without_a_current_resend_signature_changes_nothing(
    post: Carteiro, client: httpx.AsyncClient, headers: Callable[[], dict[str, str]]
) -> None:
    """No signature, a wrong one, of another body, of another time."""
    answer = await client.post(RESEND, content=EVENT, headers=headers())

    error_in(answer, 401, "UNAUTHORIZED")
    assert post.tally.feedback == {}


async def test_unrelated_event_of_resend_is_answered(
    client: httpx.AsyncClient, message: MessageId
) -> None:
    """Another type of event, another sender's mail; a body that is not an event is malformed."""
    strange = [an_event(message, "contact.created"), an_event(MessageId("unknown"))]
    answers = [
        await client.post(RESEND, content=body, headers=signed(body, SECRET))
        for body in [*strange, b"{}"]
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 400]


# --- neither ------------------------------------------------------------------------------------


async def test_feedback_of_an_unconfigured_provider_is_refused(
    tmp_path: Path, sns: SnsTwin
) -> None:
    body = an_event(MessageId("m"))
    async with opened(f"sqlite:///{tmp_path}/carteiro.db") as post, hearing(post, sns) as client:
        ses = await told(client, sns.notification(a_ses_event(MessageId("m"))))
        resend = await client.post(RESEND, content=body, headers=signed(body, SECRET))

    error_in(ses, 403, "FORBIDDEN")
    error_in(resend, 403, "FORBIDDEN")
    assert sns.fetched == []


@pytest.mark.parametrize("nothing", ["whsec_?", "whsec_", "   "])
async def test_invalid_secret_is_reported_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing: str
) -> None:
    """Not when the first webhook comes."""
    monkeypatch.setenv("A_SECRET", nothing)
    settings = {"feedback": {"resend_secret": "env:A_SECRET"}}
    async with opened(f"sqlite:///{tmp_path}/carteiro.db", **settings) as post:
        with pytest.raises(ConfigError, match="resend_secret"):
            create_api(post)


async def test_missing_secret_is_reported_with_the_name_of_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with the places that were searched."""
    monkeypatch.delenv("A_SECRET", raising=False)
    settings = {"feedback": {"resend_secret": "env:A_SECRET"}}
    async with opened(f"sqlite:///{tmp_path}/carteiro.db", **settings) as post:
        with pytest.raises(ConfigError, match=r"^feedback\.resend_secret \(from .*A_SECRET"):
            create_api(post)


async def test_evidence_settles_an_unconfirmed_message(
    post: Carteiro, client: httpx.AsyncClient, sns: SnsTwin
) -> None:
    """A mail without an answer was a dead letter; now it is sent."""
    async with a_client(post) as tenant:
        answer = await sent(tenant, to="ana@example.com", delivery="at_most_once")
    message = MessageId(answer["outboxId"])
    job = await claimed_and_declared(post.backend.store, provider="ses:sa-east-1")
    await settled(post.backend.store, job, dead(DeadReason.IN_DOUBT), in_doubt=1)
    before = await post.backend.reading.message(message)

    heard = await told(client, sns.notification(a_ses_event(message, "Send")))

    after = await post.backend.reading.message(message)
    assert before is not None
    assert after is not None
    assert (before.state, before.in_doubt) == ("FAILED", 1)
    assert answer_in(heard) == {"result": "resolved"}
    assert after.state == "SENT"


async def test_contradicting_event_is_answered_counted_and_logged(
    post: Carteiro, client: httpx.AsyncClient, sns: SnsTwin, message: MessageId
) -> None:
    """An event that names another tenant changes nothing."""
    event = a_ses_bounce(message)
    event["mail"]["tags"]["carteiro-tenant"] = ["another"]

    with logged() as lines:
        answer = await told(client, sns.notification(event))

    [line] = [line for line in lines if line["event"] == "feedback.ignored"]
    assert answer_in(answer) == {"result": "ignored"}
    assert (line["outboxId"], line["tenantTag"]) == (message, "another")
    assert post.tally.feedback == {("ses", "BOUNCED", "ignored"): 1}
    assert await types(post, message) == []
    assert await post.backend.suppressions.find(["ana@example.com"], tenant=ACME) == []


async def test_concurrent_reports_of_one_event_are_recorded_once(
    post: Carteiro, client: httpx.AsyncClient, message: MessageId
) -> None:
    body = an_event(message, "email.bounced", bounce={"type": "Permanent", "subType": "General"})
    headers = signed(body, SECRET)
    answers = await asyncio.gather(
        *[client.post(RESEND, content=body, headers=headers) for _ in range(10)]
    )

    results = sorted(answer_in(each)["result"] for each in answers)
    assert results == ["known"] * 9 + ["noted"]
    assert await types(post, message) == [EventType.BOUNCED]
