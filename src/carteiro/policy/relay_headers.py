"""Headers by which a message steers the relay that takes it over: recipients, templates, accounts, billing.

Pure data. Providers read them out of mail that comes by SMTP or as a raw message, most before anything
else of it, and some replace the recipients of the envelope with those that a header names.
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
    "X-Mailin-",  # Brevo, once Sendinblue
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
    """Whether a relay takes orders from a header of this name."""
    return _STEERING.match(name) is not None
