"""The mail that both sides of the smtp measure send."""

from carteiro.email.message import make_email
from carteiro.email.mime import write_mime
from carteiro.model import MessageId

SENDER = "shop@example.com"
SUBJECT = "Your order"
TEXT = "It is on its way, see https://shop.example/o/1\n" * 8
HTML = (
    "<!doctype html><html><body><h1>Your order</h1>\n"
    + "<p>It is on its way, see <a href='https://shop.example/o/1'>here</a>.</p>\n" * 8
    + "</body></html>"
)


def to(number: int) -> str:
    """One of many recipients."""
    return f"customer{number}@example.com"


def ready_made() -> bytes:
    """The mail as bytes."""
    email = make_email({"to": to(1), "subject": SUBJECT, "text": TEXT, "html": HTML})
    message = MessageId("01900000-0000-7000-8000-000000000001")
    return write_mime(email, sender=SENDER, message=message, revision=1)
