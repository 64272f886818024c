"""Messages of Amazon SNS: from a topic that we know, signed by SNS; subscriptions are confirmed by asking its API.

No address that a message names is ever fetched, but the certificate's, and that only from SNS itself in the
topic's own region.
"""

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode, urlsplit

import orjson
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from carteiro.config.provider_spec import Fetch
from carteiro.errors import FeedbackRefused
from carteiro.model import Feedback, NoteAnswer
from carteiro.observability import log
from carteiro.providers.feedback import read_event
from carteiro.providers.ses.events import from_ses
from carteiro.providers.ses.feedback import SnsMessage
from carteiro.providers.ses.sns_certificates import Certificates

_CERTIFICATE = re.compile(r"/SimpleNotificationService-[0-9a-f]{1,64}\.pem", re.ASCII)
_HOST = re.compile(r"sns\.([a-z0-9-]{3,})\.amazonaws\.com(\.cn)?", re.ASCII)
_SIGNED = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": (
        *("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    ),
}
_SIGNED["UnsubscribeConfirmation"] = _SIGNED["SubscriptionConfirmation"]


class Sns:
    """Judges messages of the topics that it was given; ``url`` is where its API is, empty: in the topic's region."""

    def __init__(self, topics: Collection[str], *, fetch: Fetch, url: str = "") -> None:
        self._topics = frozenset(topics)
        self._fetch = fetch
        self._url = url
        self._certificates = Certificates(fetch)

    def admit(self, headers: Mapping[str, str]) -> None:
        """Refuse other topics before the body is read: SNS names the topic in a header, too."""
        self._refuse_others(headers.get("x-amz-sns-topic-arn", ""))

    async def hear(self, _headers: Mapping[str, str], body: bytes) -> Feedback | str | None:
        """Feedback of SES, signed by SNS; a subscription to one of our topics is confirmed."""
        message = read_event(body, SnsMessage)
        await self.verify(message)
        if message.type == "SubscriptionConfirmation":
            await self.confirm(message)
            log.subscription_confirmed(message.topic_arn)
            return "confirmed"
        if message.type != "Notification":
            return NoteAnswer.UNKNOWN
        return from_ses(_parsed(message.message))

    def _refuse_others(self, topic: str) -> None:
        if topic not in self._topics:
            raise FeedbackRefused(403, "The topic is none of feedback.ses_topics")

    async def verify(self, message: SnsMessage) -> None:
        """Return if SNS sent it for one of our topics; else a `FeedbackRefused`."""
        self._refuse_others(message.topic_arn)
        if message.signature_version != "2" or message.type not in _SIGNED:
            text = "Only signatures of version 2 are taken: set SignatureVersion of the topic to 2"
            raise FeedbackRefused(401, text)
        certificate = await self._certificate(message)
        if not _is_signed(message, certificate):
            raise FeedbackRefused(401, "The signature is wrong")

    async def confirm(self, message: SnsMessage) -> None:
        """Confirm the subscription of a topic that was verified; a `FeedbackRefused` if SNS cannot be asked."""
        region = _region(message.topic_arn)
        ending = ".cn" if region.startswith("cn-") else ""
        place = self._url or f"https://sns.{region}.amazonaws.com{ending}/"
        asked = {
            "Action": "ConfirmSubscription",
            "TopicArn": message.topic_arn,
            "Token": message.token or "",
            "Version": "2010-03-31",
        }
        try:
            await self._fetch(f"{place}?{urlencode(asked)}")
        except OSError:
            raise FeedbackRefused(503, "SNS did not confirm the subscription: try again") from None

    async def _certificate(self, message: SnsMessage) -> x509.Certificate:
        url = message.signing_cert_url
        if not _is_of_sns(url, _region(message.topic_arn)):
            raise FeedbackRefused(401, "The certificate is not at SNS in the topic's region")
        known = await self._certificates.get(url)
        now = datetime.now(UTC)
        if not known.not_valid_before_utc <= now <= known.not_valid_after_utc:
            raise FeedbackRefused(401, "The certificate is not valid now")
        return known


def _parsed(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _region(topic: str) -> str:
    return topic.split(":")[3]


def _is_of_sns(url: str, region: str) -> bool:
    try:
        parts = urlsplit(url)
        host = _HOST.fullmatch(parts.netloc)  # without a port or a user
    except ValueError:
        return False
    is_there = host is not None and host[1] == region
    is_file = _CERTIFICATE.fullmatch(parts.path) is not None
    return is_there and parts.scheme == "https" and is_file and not parts.query


def _is_signed(message: SnsMessage, certificate: x509.Certificate) -> bool:
    key = certificate.public_key()
    told = message.model_dump(by_alias=True)
    names = [name for name in _SIGNED[message.type] if told[name] is not None]
    signed = "".join(f"{name}\n{told[name]}\n" for name in names).encode("utf-8", "surrogatepass")
    try:
        signature = base64.b64decode(message.signature, validate=True)
        if not isinstance(key, rsa.RSAPublicKey):
            return False
        key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except (binascii.Error, ValueError, InvalidSignature):
        return False
    return True
