"""Amazon SNS as tests play it: with its own key and certificate, made at run time."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from carteiro.model import MessageId
from carteiro.runtime.fetching import NotThere

TOPIC = "arn:aws:sns:sa-east-1:123456789012:mails"
CERTIFICATE_URL = "https://sns.sa-east-1.amazonaws.com/SimpleNotificationService-1.pem"
_CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_NOTIFICATION = ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type")


class SnsTwin:
    """Signs messages, and serves certificates and confirmations."""

    def __init__(self, *, valid_for: timedelta = timedelta(days=1)) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._certificate = _certificate(self._key, valid_for)
        self.fetched: list[str] = []
        self.is_away = False

    async def fetch(self, url: str) -> bytes:
        """A document of SNS; no other can be fetched."""
        self.fetched.append(url)
        if self.is_away:
            raise OSError("away")
        if url == CERTIFICATE_URL:
            return self._certificate
        if "Action=ConfirmSubscription" in url:
            return b"<ConfirmSubscriptionResponse/>"
        raise NotThere("not found")

    def notification(self, event: object, **changes: Any) -> dict[str, Any]:
        """A signed notification of an event; changes are made after it was signed."""
        told = {"Type": "Notification", "Message": orjson.dumps(event).decode()}
        return self.signed(told) | changes

    def confirmation(self, **changes: Any) -> dict[str, Any]:
        """A signed request to confirm a subscription."""
        told = {
            "Type": "SubscriptionConfirmation",
            "Message": "You have chosen to subscribe",
            "Token": "a-token",
            "SubscribeURL": "https://attacker.example/confirm",
        }
        return self.signed(told) | changes

    def signed(self, told: dict[str, Any]) -> dict[str, Any]:
        """The message with the fields that SNS adds."""
        message = {
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": TOPIC,
            "Timestamp": "2027-01-15T08:00:00.000Z",
            "SignatureVersion": "2",
            "SigningCertURL": CERTIFICATE_URL,
            "UnsubscribeURL": "https://attacker.example/unsubscribe",
        } | told
        names = _NOTIFICATION if message["Type"] == "Notification" else _CONFIRMATION
        text = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return message | {"Signature": base64.b64encode(signature).decode()}


def _certificate(key: rsa.RSAPrivateKey, valid_for: timedelta) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    begins = datetime.now(UTC) - timedelta(days=30)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(datetime.now(UTC) + valid_for)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def a_ses_event(message: MessageId, type: str = "Delivery", **more: Any) -> dict[str, Any]:
    """An event as SES publishes it; ``more`` is the part that it is named after."""
    names = {"DeliveryDelay": "deliveryDelay", "Rendering Failure": "failure"}
    return {
        "eventType": type,
        "mail": {
            "timestamp": "2027-01-15T08:00:00.000Z",
            "messageId": "ses-1",
            "destination": ["ana@example.com"],
            "tags": {
                "ses:configuration-set": ["mails"],
                "carteiro-message": [message],
                "carteiro-tenant": ["acme"],
                "carteiro-revision": ["1"],
            },
        },
        names.get(type, type.lower()): {"timestamp": "2027-01-15T08:00:01.000Z"} | more,
    }


def a_ses_bounce(
    message: MessageId, type: str = "Permanent", sub_type: str = "General"
) -> dict[str, Any]:
    """A bounce as SES publishes it."""
    recipient = {
        "emailAddress": "ana@example.com",
        "diagnosticCode": "smtp; 550 5.1.1 no such user",
    }
    return a_ses_event(
        message,
        "Bounce",
        bounceType=type,
        bounceSubType=sub_type,
        bouncedRecipients=[recipient],
        feedbackId="feedback-1",
    )
