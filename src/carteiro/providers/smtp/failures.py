"""Failures of SMTP sessions: their stage and their meaning.

Before the end of the mail is sent, nothing was handed over. After it, a missing reply leaves a doubt.
"""

import re
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from carteiro.model import Failure
from carteiro.policy import classify
from carteiro.policy import stage as stages

NAME = "smtp"


class Stage(StrEnum):
    """Where in the talk with a relay something happened, as people read it."""

    CONNECT = "connecting"
    GREETING = "greeting"
    EHLO = "EHLO"
    STARTTLS = "STARTTLS"
    AUTH = "AUTH"
    RSET = "RSET"
    MAIL = "MAIL FROM"
    RCPT = "RCPT TO"
    DATA = "DATA"
    BODY = "the body"
    REPLY = "the reply to the whole mail"


# How rules name the stages; what goes wrong within a body, or at its end, comes as an answer to it.
_NAMES = {each: stages.Stage[each.name] for each in Stage if each.name in stages.Stage.__members__}
_NAMES |= {Stage.BODY: stages.Stage.DATA, Stage.REPLY: stages.Stage.DOT}
_CODES = re.compile(r"\d{3}(?:[ -]\d\.\d{1,3}\.\d{1,3})?", re.ASCII)
_CLOSING = 421


class Reply(NamedTuple):
    """A reply: its code, and all its lines."""

    code: int
    text: str

    @property
    def is_positive(self) -> bool:
        """True if the command succeeded."""
        return self.code // 100 == 2  # noqa: PLR2004 - the class of completion

    @property
    def is_refusal(self) -> bool:
        """True if it was refused, temporarily or permanently."""
        return self.code // 100 in {4, 5}


class SmtpError(Exception):
    """It did not go through; ``reply`` None: not because the relay said so."""

    def __init__(self, stage: Stage, failure: Failure, reply: Reply | None = None) -> None:
        self.stage = stage
        self.failure = failure
        self.reply = reply
        super().__init__(f"{stage}: {failure.reason}")

    @property
    def is_unanswered(self) -> bool:
        """True if all was handed over, and the outcome is unknown."""
        return self.stage is Stage.REPLY and self.reply is None


class ConnectionGone(SmtpError):
    """The relay closed the connection, or is about to."""


def said(stage: Stage, reply: Reply, host: str = "") -> SmtpError:
    """The relay, at ``host`` if that is known, refused, or answered what it was not asked."""
    text = _codes(reply.text) if stage is Stage.AUTH else reply.text
    failure = classify.classify_smtp(text, stage=_NAMES[stage], mx=host)
    kind = ConnectionGone if reply.code == _CLOSING else SmtpError
    return kind(stage, failure, reply)


def _codes(text: str) -> str:
    """The codes of a reply without its text: some relays repeat the password that they refuse."""
    found = _CODES.match(text)
    return found[0] if found else ""


def refusal_of(reply: Reply, host: str) -> Failure:
    """Why the relay at ``host`` refused a recipient."""
    return classify.classify_smtp(reply.text, stage=stages.Stage.RCPT, mx=host)


def gone(stage: Stage, why: str) -> ConnectionGone:
    """The connection could not be made, or broke."""
    return ConnectionGone(stage, classify.network(f"{stage}: {why}"))


def nonsense(stage: Stage, what: str) -> SmtpError:
    """The relay sent something that is not a reply."""
    return SmtpError(stage, classify.network(f"{stage}: not an SMTP reply: {what}"))


def timed_out(stage: Stage) -> SmtpError:
    """The relay did not answer in time."""
    failure = classify.timeout(NAME)
    return SmtpError(stage, replace(failure, reason=f"{failure.reason}: {stage}"))


def unfit(stage: Stage, code: str, reason: str) -> SmtpError:
    """The relay is not what the settings ask for; nothing is sent until one of them changes."""
    return SmtpError(stage, classify.unfit(NAME, code, reason))


NOT_INTERNATIONAL = classify.not_international(NAME, "the relay does not offer SMTPUTF8")


def too_big(size: int, limit: int) -> Failure:
    """The failure of a mail above the SIZE limit of the relay, without sending it."""
    reply = f"552 5.3.4 The mail has {size} bytes, the relay takes {limit}"
    return classify.classify_smtp(reply)
