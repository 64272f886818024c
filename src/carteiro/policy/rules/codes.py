"""The meanings of reply codes and enhanced codes.

A temporary reply never becomes permanent by its text: the preset's attempts end it.
"""

from collections.abc import Mapping

from carteiro.model import Category, Scope
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    BUSY_RECIPIENT,
    DESTINATION_FULL,
    DESTINATION_LATER,
    DESTINATION_REFUSES,
    FULL_MAILBOX,
    MESSAGE_LATER,
    OUR_ACCOUNT,
    OUR_SENDER,
    REFUSED_RECIPIENT,
    TOO_FAST,
    UNAVAILABLE,
    UNREACHED_RECIPIENT,
    Ruling,
    later,
)
from carteiro.policy.stage import Stage

_OUR_SENDER_LATER = later(Scope.SENDER, Category.TRANSIENT_ERROR)
_OUR_ACCOUNT_LATER = later(Scope.PROVIDER, Category.CONFIGURATION_ERROR)

# Checked first: at every stage they are only about our login.
ACCOUNT_CODES = frozenset({"523", "524", "530", "534", "535", "538"})

# Specific enhanced codes: used unless the text names another cause.
ENHANCED: Mapping[str, Ruling] = {
    "4.1.7": _OUR_SENDER_LATER,
    "4.1.8": _OUR_SENDER_LATER,
    "4.2.2": FULL_MAILBOX,
    "4.3.1": DESTINATION_FULL,
    "4.4.5": TOO_FAST,
    "4.5.3": MESSAGE_LATER,
    "4.5.6": _OUR_ACCOUNT_LATER,
    "4.7.8": _OUR_ACCOUNT_LATER,
    "4.7.9": _OUR_ACCOUNT_LATER,
    "4.7.10": _OUR_ACCOUNT_LATER,
    "4.7.11": _OUR_ACCOUNT_LATER,
    "4.7.12": _OUR_ACCOUNT_LATER,
    "4.7.13": BUSY_RECIPIENT,
    "4.7.14": _OUR_ACCOUNT_LATER,
    "4.7.20": _OUR_SENDER_LATER,
    "4.7.21": _OUR_SENDER_LATER,
    "4.7.22": _OUR_SENDER_LATER,
    "4.7.23": _OUR_SENDER_LATER,
    "4.7.24": _OUR_SENDER_LATER,
    "4.7.25": _OUR_SENDER_LATER,
    "4.7.26": _OUR_SENDER_LATER,
    "4.7.27": _OUR_SENDER_LATER,
    "4.7.28": TOO_FAST,
    "5.1.1": REFUSED_RECIPIENT,
    "5.1.2": REFUSED_RECIPIENT,
    "5.1.3": REFUSED_RECIPIENT,
    "5.1.4": REFUSED_RECIPIENT,
    "5.1.6": REFUSED_RECIPIENT,
    "5.1.7": OUR_SENDER,
    "5.1.8": OUR_SENDER,
    "5.1.10": REFUSED_RECIPIENT,
    # RFC 3463 on x.2.2: "should be used as a persistent transient failure".
    "5.2.2": FULL_MAILBOX,
    "5.2.3": BAD_MESSAGE,
    "5.2.4": UNREACHED_RECIPIENT,
    "5.3.1": DESTINATION_FULL,
    "5.3.3": BAD_MESSAGE,
    "5.3.4": BAD_MESSAGE,
    "5.4.3": DESTINATION_LATER,
    "5.4.5": TOO_FAST,
    "5.4.6": UNREACHED_RECIPIENT,
    "5.4.7": BAD_MESSAGE,
    "5.5.3": MESSAGE_LATER,
    "5.5.6": OUR_ACCOUNT,
    "5.6.0": BAD_MESSAGE,
    "5.6.1": BAD_MESSAGE,
    "5.6.2": BAD_MESSAGE,
    "5.6.3": BAD_MESSAGE,
    "5.6.4": BAD_MESSAGE,
    "5.6.5": BAD_MESSAGE,
    "5.6.6": BAD_MESSAGE,
    "5.6.7": UNREACHED_RECIPIENT,
    "5.6.8": UNREACHED_RECIPIENT,
    "5.6.9": UNREACHED_RECIPIENT,
    "5.6.10": UNREACHED_RECIPIENT,
    "5.7.2": UNREACHED_RECIPIENT,
    "5.7.8": OUR_ACCOUNT,
    "5.7.9": OUR_ACCOUNT,
    "5.7.10": OUR_ACCOUNT,
    "5.7.11": OUR_ACCOUNT,
    "5.7.12": OUR_ACCOUNT,
    "5.7.13": REFUSED_RECIPIENT,
    "5.7.14": OUR_ACCOUNT,
    "5.7.15": BAD_MESSAGE,
    "5.7.16": BAD_MESSAGE,
    "5.7.17": REFUSED_RECIPIENT,
    "5.7.18": REFUSED_RECIPIENT,
    "5.7.19": UNREACHED_RECIPIENT,
    "5.7.20": OUR_SENDER,
    "5.7.21": OUR_SENDER,
    "5.7.22": OUR_SENDER,
    "5.7.23": OUR_SENDER,
    "5.7.24": OUR_SENDER,
    "5.7.25": OUR_SENDER,
    "5.7.26": OUR_SENDER,
    "5.7.27": OUR_SENDER,
    "5.7.28": TOO_FAST,
    "5.7.29": BAD_MESSAGE,
    "5.7.30": DESTINATION_REFUSES,
}

# Codes that servers use for too much: used if the text is not known.
OPEN_ENHANCED: Mapping[str, Ruling] = {
    "4.2.1": BUSY_RECIPIENT,
    "4.7.0": DESTINATION_LATER,
    "4.7.1": DESTINATION_LATER,
    "5.1.0": REFUSED_RECIPIENT,
    "5.2.0": REFUSED_RECIPIENT,
    "5.2.1": REFUSED_RECIPIENT,
    "5.3.2": DESTINATION_REFUSES,
    "5.3.5": DESTINATION_LATER,
    "5.4.2": DESTINATION_LATER,
    "5.4.4": REFUSED_RECIPIENT,
    "5.7.3": OUR_SENDER,
    "5.7.4": OUR_SENDER,
    "5.7.5": OUR_SENDER,
    "5.7.6": OUR_SENDER,
    "5.7.7": OUR_SENDER,
}

# Class and subject: used if neither the whole code nor the text says more.
SUBJECTS: Mapping[str, Ruling] = {
    "4.1": BUSY_RECIPIENT,
    "4.2": BUSY_RECIPIENT,
    "4.3": DESTINATION_LATER,
    "4.4": DESTINATION_LATER,
    "4.5": MESSAGE_LATER,
    "4.6": MESSAGE_LATER,
    "4.7": DESTINATION_LATER,
    "5.1": REFUSED_RECIPIENT,
    "5.2": REFUSED_RECIPIENT,
    "5.3": DESTINATION_REFUSES,
    "5.4": DESTINATION_REFUSES,
    "5.5": BAD_MESSAGE,
    "5.6": BAD_MESSAGE,
    "5.7": BAD_MESSAGE,
}

# A refusal "by policy" without a known phrase is judged by its stage, as a bare 550.
POLICY_AT: Mapping[str, Ruling] = {
    Stage.MAIL: OUR_SENDER,
    Stage.RCPT: REFUSED_RECIPIENT,
}

# RFC 5321 on a code at one stage; at other stages it has another meaning, or none.
CODES_AT: Mapping[tuple[str, str], Ruling] = {
    ("552", Stage.RCPT): FULL_MAILBOX,
}

CODES: Mapping[str, Ruling] = {
    "421": DESTINATION_LATER,
    "432": _OUR_ACCOUNT_LATER,
    "450": BUSY_RECIPIENT,
    "451": DESTINATION_LATER,
    "452": FULL_MAILBOX,
    "454": UNAVAILABLE,
    "455": MESSAGE_LATER,
    "500": BAD_MESSAGE,
    "501": BAD_MESSAGE,
    "502": BAD_MESSAGE,
    "503": BAD_MESSAGE,
    "504": BAD_MESSAGE,
    "521": REFUSED_RECIPIENT,
    "523": OUR_ACCOUNT,
    "524": OUR_ACCOUNT,
    "525": REFUSED_RECIPIENT,
    "530": OUR_ACCOUNT,
    "534": OUR_ACCOUNT,
    "535": OUR_ACCOUNT,
    "538": OUR_ACCOUNT,
    "550": REFUSED_RECIPIENT,
    "551": REFUSED_RECIPIENT,
    "552": REFUSED_RECIPIENT,
    "553": REFUSED_RECIPIENT,
    "554": BAD_MESSAGE,
    "555": BAD_MESSAGE,
    "556": REFUSED_RECIPIENT,
}

# A success or a "go on" instead of a refusal is a protocol error of the server.
CLASSES: Mapping[str, Ruling] = {
    "2": UNAVAILABLE,
    "3": UNAVAILABLE,
    "4": DESTINATION_LATER,
    "5": BAD_MESSAGE,
}

# Codes that may mean that there is no such mailbox: alone, or with one of the enhanced codes below.
MAILBOX_CODES = frozenset({"550", "551", "553"})
MAILBOX_ENHANCED = frozenset({"5.1.0", "5.1.1", "5.1.3", "5.1.6", "5.1.10"})
