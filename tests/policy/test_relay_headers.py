"""Headers by which a message controls a relay."""

import pytest

from carteiro.policy.relay_headers import steers_relay


@pytest.mark.parametrize(
    "name",
    [
        "X-SMTPAPI",
        "x-smtpapi",
        "X-SG-EID",
        "X-MSYS-API",
        "X-MC-PreserveRecipients",
        "X-Mandrill-User",
        "X-PM-Message-Stream",
        "x-ses-configuration-set",
        "X-SES-FROM-ARN",
        "X-Mailgun-Recipient-Variables",
        "X-Mailin-Tag",
        "X-Sib-Sandbox",
        "X-MJ-TemplateID",
        "X-Mailjet-Campaign",
        "X-ElasticEmail-Settings",
        "X-MT-Category",
        "X-Postal-Tag",
        "X-Virtual-MTA",
        "X-MS-Exchange-Organization-SCL",
    ],
)
def test_relay_headers_are_known(name: str) -> None:
    """In any case."""
    assert steers_relay(name)


@pytest.mark.parametrize(
    "name",
    [
        "X-Entity-Ref-ID",
        "X-Campaign",
        "X-Mailer",
        "X-Priority",
        "X-SMTPAPIS",
        "X-My-SES-Header",
        "X-Sesame",
        "X-MCP",
        "X-Request-Id",
        "References",
        "List-Unsubscribe",
    ],
)
def test_other_custom_headers_are_allowed(name: str) -> None:
    """They are for the recipient, or for nobody."""
    assert not steers_relay(name)
