"""Texts of libraries for a call without an answer, and their causes."""

from enum import Enum, auto

from carteiro.policy.rules.phrases import Phrases, phrases


class Silence(Enum):
    """Causes of a missing answer."""

    TIMEOUT = auto()
    UNTRUSTED = auto()
    UNREACHED = auto()


_WORDS = {
    Silence.UNTRUSTED: """
        certificate verify failed | certificate & {expired,invalid,untrusted,not trusted,mismatch}
        | self signed certificate | local issuer certificate | wrong version number | unknown ca
        | handshake {failure,failed} | ssl | sslerror | sslv3 | tlsv1 | tls {error,failure,failed}
        | hostname mismatch | starttls & not {offer,offered,supported}
    """,
    Silence.TIMEOUT: """
        timed out | timeout | timeouterror | time out | etimedout | connecttimeout | readtimeout
        | deadline exceeded | did not answer
    """,
    Silence.UNREACHED: """
        connection {refused,reset,aborted,closed,lost,broken,error,failed} | connectionrefusederror
        | connectionreseterror | connecterror | econnrefused | econnreset | enotfound | ehostunreach | broken pipe
        | name or service not known | nodename nor servname | name resolution | getaddrinfo | name does not resolve
        | no route to host | {network,host} is unreachable | {network,host} unreachable
        | {could not,cannot,failed to,unable to} connect | {server,remote} & disconnected | no address associated
        | eof occurred | remote end closed | could not connect to the endpoint
    """,
}

# Certificates first: libraries name the failed connection in the same text.
PHRASES = {phrase: why for why, text in _WORDS.items() for phrase in phrases(text)}
WORDS = Phrases(PHRASES.items())
