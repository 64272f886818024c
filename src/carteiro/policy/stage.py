"""Stages of an SMTP session."""

from enum import StrEnum


class Stage(StrEnum):
    """The command that was answered; ``dot`` is the end of the mail."""

    CONNECT = "connect"
    GREETING = "greeting"
    EHLO = "ehlo"
    STARTTLS = "starttls"
    AUTH = "auth"
    RSET = "rset"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    DOT = "dot"


# Before any message.
SESSION = frozenset({Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.STARTTLS, Stage.RSET})
BEFORE_RECIPIENTS = SESSION | {Stage.AUTH, Stage.MAIL}
CONTENT = frozenset({Stage.DATA, Stage.DOT})
