"""The meanings of reply codes and enhanced codes.

A temporary reply never becomes permanent by its text: the preset's attempts end it.
"""

from collections.abc import Mapping

from carteiro.policy.rules.ruling import (
    FULL_MAILBOX,
    OUR_SENDER,
    REFUSED_RECIPIENT,
    Ruling,
    meanings,
)
from carteiro.policy.stage import Stage

# Checked first: at every stage they are only about our login.
ACCOUNT_CODES = frozenset({"523", "524", "530", "534", "535", "538"})

# Specific enhanced codes: used unless the text names another cause.
# RFC 3463 on x.2.2: "should be used as a persistent transient failure".
ENHANCED = meanings("""
    SENDER_LATER: 4.1.7 4.1.8 4.7.20 4.7.21 4.7.22 4.7.23 4.7.24 4.7.25 4.7.26 4.7.27
    FULL_MAILBOX: 4.2.2 5.2.2
    DESTINATION_FULL: 4.3.1 5.3.1
    TOO_FAST: 4.4.5 4.7.28 5.4.5 5.7.28
    MESSAGE_LATER: 4.5.3 5.5.3
    ACCOUNT_LATER: 4.5.6 4.7.8 4.7.9 4.7.10 4.7.11 4.7.12 4.7.14
    BUSY_RECIPIENT: 4.7.13
    REFUSED_RECIPIENT: 5.1.1 5.1.2 5.1.3 5.1.4 5.1.6 5.1.10 5.7.13 5.7.17 5.7.18
    OUR_SENDER: 5.1.7 5.1.8 5.7.20 5.7.21 5.7.22 5.7.23 5.7.24 5.7.25 5.7.26 5.7.27
    BAD_MESSAGE:
        5.2.3 5.3.3 5.3.4 5.4.7 5.6.0 5.6.1 5.6.2 5.6.3 5.6.4 5.6.5 5.6.6 5.7.15 5.7.16 5.7.29
    UNREACHED_RECIPIENT: 5.2.4 5.4.6 5.6.7 5.6.8 5.6.9 5.6.10 5.7.2 5.7.19
    DESTINATION_LATER: 5.4.3
    OUR_ACCOUNT: 5.5.6 5.7.8 5.7.9 5.7.10 5.7.11 5.7.12 5.7.14
    DESTINATION_REFUSES: 5.7.30
""")

# Codes that servers use for too much: used if the text is not known.
OPEN_ENHANCED = meanings("""
    BUSY_RECIPIENT: 4.2.1
    DESTINATION_LATER: 4.7.0 4.7.1 5.3.5 5.4.2
    REFUSED_RECIPIENT: 5.1.0 5.2.0 5.2.1 5.4.4
    DESTINATION_REFUSES: 5.3.2
    OUR_SENDER: 5.7.3 5.7.4 5.7.5 5.7.6 5.7.7
""")

# Class and subject: used if neither the whole code nor the text says more.
SUBJECTS = meanings("""
    BUSY_RECIPIENT: 4.1 4.2
    DESTINATION_LATER: 4.3 4.4 4.7
    MESSAGE_LATER: 4.5 4.6
    REFUSED_RECIPIENT: 5.1 5.2
    DESTINATION_REFUSES: 5.3 5.4
    BAD_MESSAGE: 5.5 5.6 5.7
""")

# A refusal "by policy" without a known phrase is judged by its stage, as a bare 550.
POLICY_AT: Mapping[str, Ruling] = {Stage.MAIL: OUR_SENDER, Stage.RCPT: REFUSED_RECIPIENT}

# RFC 5321 on a code at one stage; at other stages it has another meaning, or none.
CODES_AT: Mapping[tuple[str, str], Ruling] = {("552", Stage.RCPT): FULL_MAILBOX}

CODES = meanings("""
    DESTINATION_LATER: 421 451
    ACCOUNT_LATER: 432
    BUSY_RECIPIENT: 450
    FULL_MAILBOX: 452
    UNAVAILABLE: 454
    MESSAGE_LATER: 455
    BAD_MESSAGE: 500 501 502 503 504 554 555
    REFUSED_RECIPIENT: 521 525 550 551 552 553 556
    OUR_ACCOUNT: 523 524 530 534 535 538
""")

# A success or a "go on" instead of a refusal is a protocol error of the server.
CLASSES = meanings("""
    UNAVAILABLE: 2 3
    DESTINATION_LATER: 4
    BAD_MESSAGE: 5
""")

# Codes that may mean that there is no such mailbox: alone, or with one of the enhanced codes below.
MAILBOX_CODES = frozenset({"550", "551", "553"})
MAILBOX_ENHANCED = frozenset({"5.1.0", "5.1.1", "5.1.3", "5.1.6", "5.1.10"})
