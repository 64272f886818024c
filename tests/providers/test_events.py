"""Events of all providers become the same feedback."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import BounceKind, EventType, Feedback, MessageId
from carteiro.providers.resend.events import from_resend
from carteiro.providers.ses.events import from_ses
from support.resend_webhooks import an_event
from support.sns import a_ses_bounce, a_ses_event

ID = MessageId("018cc251-f400-7000-8000-000000000002")
AT = datetime(2027, 1, 15, 8, 0, 1, tzinfo=UTC)


def _ses(event: object) -> Feedback:
    found = from_ses(event)
    assert found is not None
    return found


def _resend(type: str, **more: Any) -> Feedback:
    found = from_resend(orjson.loads(an_event(ID, type, **more)), event_id="msg_1")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "type", "bounce"),
    [
        ("Send", EventType.SENT, None),
        ("Delivery", EventType.DELIVERED, None),
        ("Complaint", EventType.COMPLAINED, None),
        ("DeliveryDelay", EventType.DELAYED, None),
        ("Open", EventType.OPENED, None),
        ("Click", EventType.CLICKED, None),
        ("Reject", EventType.BOUNCED, BounceKind.REJECTED),
        ("Rendering Failure", EventType.BOUNCED, BounceKind.REJECTED),
    ],
)
def test_every_event_of_ses(name: str, type: EventType, bounce: BounceKind | None) -> None:
    """With its time and with our ids."""
    told = _ses(a_ses_event(ID, name))

    assert (told.type, told.bounce, told.at, told.message) == (type, bounce, AT, ID)
    assert (told.provider, told.provider_id, told.revision) == ("ses", "ses-1", 1)


@pytest.mark.parametrize(
    ("type", "sub_type", "kind"),
    [
        ("Permanent", "General", BounceKind.HARD),
        ("Permanent", "NoEmail", BounceKind.HARD),
        ("Permanent", "Suppressed", BounceKind.SOFT),
        ("Permanent", "OnAccountSuppressionList", BounceKind.SOFT),
        ("Permanent", "UnsubscribedRecipient", BounceKind.SOFT),
        ("Transient", "General", BounceKind.SOFT),
        ("Transient", "MailboxFull", BounceKind.SOFT),
        ("Undetermined", "Undetermined", BounceKind.SOFT),
    ],
)
def test_only_the_narrow_set_is_hard(type: str, sub_type: str, kind: BounceKind) -> None:
    """The same for both providers."""
    ses = _ses(a_ses_bounce(ID, type, sub_type))
    resend = _resend("email.bounced", bounce={"type": type, "subType": sub_type, "message": "no"})

    assert (ses.type, ses.bounce, ses.recipients) == (EventType.BOUNCED, kind, ("ana@example.com",))
    assert ses.detail == f"{type}/{sub_type}: smtp; 550 5.1.1 no such user"
    assert (resend.bounce, resend.detail) == (kind, f"{type}/{sub_type}: no")


def test_complaint_about_an_unsent_mail_is_ignored() -> None:
    """The account's own list had the address."""
    people = [{"emailAddress": "ana@example.com"}]
    more = {"complaintSubType": "OnAccountSuppressionList", "complainedRecipients": people}

    told = _ses(a_ses_event(ID, "Complaint", **more))

    assert (told.type, told.bounce) == (EventType.BOUNCED, BounceKind.SOFT)


def test_notification_equals_an_event() -> None:
    """The older shape: another name, and our id in the header that we gave."""
    event = a_ses_bounce(ID)
    mail = {name: each for name, each in event["mail"].items() if name != "tags"}
    headers = [{"name": "Message-ID", "value": f"<{ID}.3@example.com>"}]
    notification = {
        "notificationType": "Bounce",
        "bounce": event["bounce"],
        "mail": mail | {"headers": headers},
    }

    told = _ses(notification)

    assert (told.message, told.revision, told.bounce) == (ID, 3, BounceKind.HARD)


def test_common_headers_are_enough() -> None:
    """Where the headers themselves are left out."""
    event = a_ses_event(ID)
    event["mail"] |= {"tags": {}, "commonHeaders": {"messageId": f"<{ID}.2@example.com>"}}

    assert _ses(event).revision == 2


def test_event_is_identified_by_its_content() -> None:
    """Published twice it is the same; of another time, link or recipient another."""
    same = [_ses(a_ses_event(ID, "Click", link="https://a.example")).event_id for _ in range(2)]
    other = _ses(a_ses_event(ID, "Click", link="https://b.example")).event_id
    later = _ses(a_ses_event(ID, "Click", timestamp="2027-01-15T08:00:02Z")).event_id

    assert len({*same}) == 1
    assert len({*same, other, later}) == 3


@pytest.mark.parametrize(
    ("name", "type", "bounce"),
    [
        ("email.sent", EventType.SENT, None),
        ("email.delivered", EventType.DELIVERED, None),
        ("email.delivery_delayed", EventType.DELAYED, None),
        ("email.complained", EventType.COMPLAINED, None),
        ("email.bounced", EventType.BOUNCED, BounceKind.SOFT),
        ("email.opened", EventType.OPENED, None),
        ("email.clicked", EventType.CLICKED, None),
        ("email.failed", EventType.BOUNCED, BounceKind.REJECTED),
        ("email.suppressed", EventType.BOUNCED, BounceKind.SOFT),
    ],
)
def test_every_event_of_resend(name: str, type: EventType, bounce: BounceKind | None) -> None:
    """With its time and with our ids, known by the webhook's own id."""
    told = _resend(name)

    assert (told.type, told.bounce, told.at, told.message) == (type, bounce, AT, ID)
    assert (told.provider, told.provider_id, told.event_id) == ("resend", "resend-1", "msg_1")
    assert (told.recipients, told.revision) == (("ana@example.com",), 1)


@pytest.mark.parametrize(
    ("tag", "revision"),
    [
        ("1", 1),
        ("999999999", 999_999_999),
        ("1000000000", None),
        ("9" * 5000, None),
        ("-1", None),
        ("1.0", None),
        ("²", None),
        ("٣", None),
        ("", None),
    ],
)
def test_revision_is_a_number_of_few_digits(tag: str, revision: int | None) -> None:
    """Another value is dropped: the message is still known."""
    tags = {"carteiro_message": ID, "carteiro_revision": tag}

    told = _resend("email.sent", tags=tags)

    assert (told.message, told.revision) == (ID, revision)


_BOTH = {"to": ["ana@example.com", "bia@example.com"]}
_TAGGED = {"carteiro_message": ID, "carteiro_copies": "1"}


@pytest.mark.parametrize(
    ("letter", "words", "recipients"),
    [
        (_BOTH, "550 5.1.1 no such user", ()),
        (_BOTH, "550 5.1.1 <BIA@example.com>: no such user", ("bia@example.com",)),
        ({"cc": ["bia@example.com"]}, "no such user", ()),
        ({"bcc": ["bia@example.com"]}, "no such user: bia@example.com.", ("bia@example.com",)),
        ({"tags": _TAGGED}, "no such user", ()),
        ({"tags": _TAGGED}, "rfc822;ana@example.com", ("ana@example.com",)),
    ],
)
@pytest.mark.parametrize("type", ["email.bounced", "email.complained"])
def test_bounce_with_several_recipients_counts_for_the_named_one(
    letter: dict[str, Any], words: str, recipients: tuple[str, ...], type: str
) -> None:
    """Or for nobody: a mere copy must not be suppressed."""
    part = {"bounce": {"type": "Permanent", "subType": "General", "diagnosticCode": [words]}}

    told = _resend(type, **letter, **part)

    assert told.recipients == (recipients if type == "email.bounced" else ())


def test_harmless_event_counts_for_all_recipients() -> None:
    """A delivery of a mail to several."""
    assert _resend("email.delivered", **_BOTH).recipients == ("ana@example.com", "bia@example.com")


def test_bounce_that_hardens_in_the_same_second_is_another_event() -> None:
    """It says more, and must not be taken for the known one."""
    soft, hard = (
        _ses(a_ses_bounce(ID, type=type, sub_type="General")) for type in ("Transient", "Permanent")
    )

    assert (soft.bounce, hard.bounce, soft.at) == (BounceKind.SOFT, BounceKind.HARD, hard.at)
    assert soft.event_id != hard.event_id


def test_tags_may_be_listed() -> None:
    """As the send call takes them."""
    tags = [{"name": "carteiro_message", "value": ID}, {"name": "carteiro_revision", "value": "x"}]

    told = _resend("email.sent", tags=tags)

    assert (told.message, told.revision) == (ID, None)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"eventType": 7},
        {"eventType": "Subscription", "mail": a_ses_event(ID)["mail"]},
        a_ses_event(MessageId("")),
        {"eventType": "Delivery", "mail": {"tags": {"carteiro-message": [ID]}}},
        {"type": "email.sent", "created_at": "soon", "data": {"tags": {"carteiro_message": ID}}},
        {"type": "domain.created", "created_at": AT.isoformat(), "data": {}},
    ],
)
def test_event_about_foreign_mail_is_ignored(event: object) -> None:
    """Without an error."""
    assert from_ses(event) is None
    assert from_resend(event, event_id="msg_1") is None


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner),
    max_leaves=10,
)


@given(mail=_json, bounce=_json, tags=_json)
def test_any_event_is_parsed_without_an_error(mail: object, bounce: object, tags: object) -> None:
    """A provider may change its format."""
    told = {"tags": {"carteiro-message": [ID]}, "timestamp": AT.isoformat()}
    for letter in (mail, told, told | {"headers": mail, "commonHeaders": bounce}, {"tags": tags}):
        from_ses({"eventType": "Bounce", "mail": letter, "bounce": bounce})
        event = {"type": "email.bounced", "created_at": AT.isoformat(), "data": letter}
        from_resend(event, event_id="msg_1")
