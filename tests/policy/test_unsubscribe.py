"""Links to unsubscribe: only this installation makes them, and nobody else reads them."""

import base64

import pytest

from carteiro.model import MessageId, TenantId, UnsubscribeLink
from carteiro.policy.suppression import key_of
from carteiro.policy.unsubscribe import LONGEST_TENANT, LONGEST_URL, OneClick, one_click
from support.unsubscribing import OFFER, OLD_SECRET, SECRET, URL, written

ACME = TenantId("acme")
ANA = "ana@example.com"
MESSAGE = MessageId("018cc251-f400-7000-8000-000000000002")


def token(offer: OneClick = OFFER, address: str = ANA, tenant: TenantId = ACME) -> str:
    """The last part of a link."""
    return offer.url_for(address, tenant=tenant, message=MESSAGE).rpartition("/")[2]


def test_link_opens_to_what_it_was_made_of() -> None:
    """In any spelling of the address, and the same each time."""
    link = OFFER.url_for(ANA, tenant=ACME, message=MESSAGE)

    assert link == OFFER.url_for(ANA, tenant=ACME, message=MESSAGE)
    assert link == f"{URL}/unsubscribe/{token()}"
    assert OFFER.opened(token()) == UnsubscribeLink(ACME, MESSAGE, key_of(ACME, "Ana@EXAMPLE.com"))


def test_link_of_another_message_address_or_tenant_is_another() -> None:
    other = MessageId("018cc251-f400-7000-8000-000000000003")
    links = {
        OFFER.url_for(ANA, tenant=ACME, message=MESSAGE),
        OFFER.url_for("bia@example.com", tenant=ACME, message=MESSAGE),
        OFFER.url_for(ANA, tenant=TenantId("brasa"), message=MESSAGE),
        OFFER.url_for(ANA, tenant=ACME, message=other),
    }

    assert len(links) == 4


def test_link_shows_neither_address_nor_tenant_nor_message() -> None:
    """Not as text, and not as the hash that a guess could be compared with."""
    sealed = base64.urlsafe_b64decode(token() + "==")

    for hidden in (
        b"ana",
        b"acme",
        bytes.fromhex(key_of(ACME, ANA)),
        bytes.fromhex("018cc251f400"),
    ):
        assert hidden not in sealed


def test_changed_link_is_not_ours() -> None:
    """Any bit of it, any end of it, or more of it."""
    sealed = base64.urlsafe_b64decode(token() + "==")
    changed = [
        bytes([*sealed[:place], sealed[place] ^ 1 << bit, *sealed[place + 1 :]])
        for place in range(len(sealed))
        for bit in range(8)
    ]
    cut = [sealed[:end] for end in range(len(sealed))] + [sealed + b"x"]

    for each in (*changed, *cut):
        assert OFFER.opened(base64.urlsafe_b64encode(each).rstrip(b"=").decode()) is None


@pytest.mark.parametrize(
    "given",
    ["", "a", "====", "olá", "\0", "../" * 40, token() + "=" * 4, "A" * 1_000_000, f" {token()}"],
)
def test_text_that_is_not_a_link_is_refused(given: str) -> None:
    """Without an error, and a long one without being read."""
    assert OFFER.opened(given) is None


def test_old_secret_still_opens_links_and_new_one_seals_them() -> None:
    """Until the operator removes it; mails stay in mailboxes for years."""
    before = OneClick(URL, (OLD_SECRET,))
    between = OneClick(URL, (SECRET, OLD_SECRET))

    assert between.opened(token(before)) == before.opened(token(before)) is not None
    assert token(between) == token(OFFER)
    assert OFFER.opened(token(before)) is None


def test_longest_link_fits_into_a_header_and_opens() -> None:
    """One of a tenant with the longest id, at the longest URL."""
    tenant = TenantId("é" * (LONGEST_TENANT // 2))
    offer = OneClick("https://" + "a" * (LONGEST_URL - 8), (SECRET,))
    header = f"<{offer.url_for(ANA, tenant=tenant, message=MESSAGE)}>"

    opened = offer.opened(header[1:-1].rpartition("/")[2])
    assert len(f"List-Unsubscribe: {header}") <= 998
    assert opened is not None
    assert opened.tenant == tenant


@pytest.mark.parametrize("secrets", ["", "  ", "whsec_", "whsec_AAAA", f"{written(SECRET)} short"])
def test_short_secret_is_refused(secrets: str) -> None:
    """It could be guessed; one of several is as bad."""
    assert one_click(URL, secrets) is None


def test_secrets_are_separated_by_spaces_and_never_shown() -> None:
    made = one_click(URL, written(SECRET, OLD_SECRET))

    assert made == OneClick(URL, (SECRET, OLD_SECRET))
    assert "sss" not in repr(made)
