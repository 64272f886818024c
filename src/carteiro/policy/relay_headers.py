"""Headers by which a message controls the relay that takes it: recipients, templates, accounts, billing.

Pure data. Providers read them in mail by SMTP or in raw messages, most before anything else. Some replace
the recipients of the envelope with those in a header.
"""

import re

_WHOLE = ("X-SMTPAPI",)  # SendGrid
_BEGINNINGS = (
    "X-SG-",  # SendGrid
    "X-MSYS-",  # SparkPost, Momentum
    "X-SparkPost-",
    "X-MC-",  # Mandrill, Mailchimp Transactional
    "X-Mandrill-",
    "X-PM-",  # Postmark
    "X-Postmark-",
    "X-SES-",  # Amazon SES
    "X-Mailgun-",
    "X-Mailin-",  # Brevo, formerly Sendinblue
    "X-Sib-",
    "X-Brevo-",
    "X-MJ-",  # Mailjet
    "X-Mailjet-",
    "X-ElasticEmail-",
    "X-Elastic-",
    "X-MT-",  # Mailtrap
    "X-MailerSend-",
    "X-SMTP2GO-",
    "X-xsMailingId",  # SocketLabs
    "X-xsMessageId",
    "X-Postal-",
    "X-Virtual-MTA",  # PowerMTA, GreenArrow
    "X-PowerMTA-",
    "X-PMTA-",
    "X-GreenArrow-",
    "X-Binding",  # Momentum
    "X-Resend-",
    "X-TM-",  # ZeptoMail
    "X-MS-Exchange-",  # Exchange: transport rules and classification
)
_STEERING = re.compile(
    "|".join([*(f"{re.escape(name)}$" for name in _WHOLE), *map(re.escape, _BEGINNINGS)]),
    re.IGNORECASE,
)


def steers_relay(name: str) -> bool:
    """True if a relay obeys a header with this name."""
    return _STEERING.match(name) is not None
