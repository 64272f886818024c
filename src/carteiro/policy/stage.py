"""Where in a talk by SMTP an answer came."""

from enum import StrEnum


class Stage(StrEnum):
    """The step that was answered; ``dot`` is the end of the mail."""

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


# Nothing was said of any message yet.
SESSION = frozenset({Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.STARTTLS, Stage.RSET})
BEFORE_RECIPIENTS = SESSION | {Stage.AUTH, Stage.MAIL}
CONTENT = frozenset({Stage.DATA, Stage.DOT})
