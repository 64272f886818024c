"""Cost of writing a mail as bytes: our writer and the standard library's, text and HTML, in one run."""

import argparse
import statistics
import timeit
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import SMTP

from carteiro.email.message import Email, make_email
from carteiro.email.mime import write_mime
from carteiro.model import MessageId
from figures import print_table

_SENDER = "shop@example.com"
_ID = MessageId("01900000-0000-7000-8000-000000000001")
_ROUNDS = 7
_MAILS = {
    "plain English": ("Your order 5", "Your order is on its way, see here.\n" * 12),
    "Portuguese": ("Seu pedido nº 5", "Seu pedido está a caminho, José: veja aqui.\n" * 12),
    "Japanese": ("ご注文 5", "ご注文の品を発送しました。詳しくはこちら。\n" * 12),
}


def _email(subject: str, text: str) -> Email:
    html = "".join(
        f"<p>{line} <a href='https://shop.example/o/5'>5</a></p>\n" for line in text.splitlines()
    )
    return make_email(
        {
            "to": "ana@example.com",
            "subject": subject,
            "text": text,
            "html": f"<html><body>{html}</body></html>",
            "headers": {"List-Unsubscribe": "<https://shop.example/u/5>"},
        }
    )


def _ours(email: Email) -> bytes:
    return write_mime(email, sender=_SENDER, message=_ID, revision=1)


def _theirs(email: Email) -> bytes:
    mail = EmailMessage(SMTP)
    mail["From"] = _SENDER
    mail["To"] = email.to
    mail["Subject"] = email.subject
    mail["Date"] = "Mon, 10 Jun 2024 02:35:18 +0000"
    mail["Message-ID"] = f"<{_ID}.1@example.com>"
    mail["List-Unsubscribe"] = email.headers["List-Unsubscribe"]
    mail.set_content(email.text or "")
    mail.add_alternative(email.html or "", subtype="html")
    return mail.as_bytes()


def microseconds(write: Callable[[Email], bytes], email: Email, times: int) -> float:
    """The median of several rounds, per mail."""
    rounds = timeit.repeat(lambda: write(email), number=times, repeat=_ROUNDS)
    return statistics.median(rounds) / times * 1e6


def measure(times: int = 2000) -> None:
    """Print the table."""
    print("\nA mail of text and HTML as bytes\n")
    rows = []
    for name, (subject, text) in _MAILS.items():
        email = _email(subject, text)
        ours = microseconds(_ours, email, times)
        theirs = microseconds(_theirs, email, max(1, times // 20))
        size = len(_ours(email))
        rows.append([name, f"{size:,}", f"{ours:.1f}", f"{theirs:,.0f}", f"{theirs / ours:.0f}x"])
    print_table(["what", "bytes", "us", "standard library us", "faster"], rows)


def main() -> None:
    """Measure, as often as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000)
    measure(parser.parse_args().times)


if __name__ == "__main__":
    main()
