"""Mask secrets in URLs of servers, for users and logs. Pure.

Everything that is not known to be harmless is masked. A password may be in an unexpected place, and may
contain characters that should have been escaped. So it masks too much rather than too little: the secret
part ends at the last ``@``.
"""

import re
from typing import Final

MASK: Final = "***"

# URL parameters without secrets, in any case; of libpq, redis-py and MongoDB's drivers.
HARMLESS: Final = frozenset(
    {
        *("application_name", "connect_timeout", "database", "dbname", "host", "port", "ssl", "sslcert", "sslcrl"),
        *("sslkey", "sslmode", "sslnegotiation", "sslrootcert", "ssl_max_protocol_version"),
        *("ssl_min_protocol_version", "target_session_attrs", "user"),
        *("client_name", "db", "health_check_interval", "max_connections", "protocol", "retry_on_timeout"),
        *("socket_connect_timeout", "socket_keepalive", "socket_timeout", "ssl_ca_certs", "ssl_cert_reqs"),
        *("ssl_certfile", "ssl_check_hostname", "ssl_keyfile", "timeout"),
        *("appname", "authmechanism", "authsource", "compressors", "connecttimeoutms", "directconnection"),
        *("heartbeatfrequencyms", "journal", "loadbalanced", "localthresholdms", "maxidletimems", "maxpoolsize"),
        *("minpoolsize", "readconcernlevel", "readpreference", "replicaset", "retryreads", "retrywrites"),
        *("serverselectiontimeoutms", "sockettimeoutms", "srvservicename", "tls", "tlsallowinvalidcertificates"),
        *("tlsallowinvalidhostnames", "tlscafile", "tlscertificatekeyfile", "tlsinsecure", "w", "wtimeoutms"),
    }
)  # fmt: skip
_SHOWS_USER = frozenset({"postgres", "postgresql", "mongodb", "mongodb+srv"})
_FILES = frozenset({"sqlite", "memory"})
_PAGES = frozenset({"http", "https"})

_HOST = r"(?:[\w.-]{0,253}|\[[0-9A-Fa-f:.%]{0,60}\])(?::\d{1,5})?"
_PLACES = re.compile(rf"{_HOST}(?:,{_HOST})*")
_USER = re.compile(r"[\w.+-]{0,63}")
_PATH = re.compile(r"(?:/[\w.+ -]{0,255})*")
_SAID = re.compile(r"[\w./:+-]{0,255}")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]{0,30}://[^\s\"'<>]+")
_QUOTED = re.compile(r"'[^']*'?|\"[^\"]*\"?|<[^>]*>?")
_STEP = re.compile(r"[a-z][a-z._-]{0,23}|v\d{1,3}|")  # of a web page: a word, not a token


def masked_url(url: str) -> str:
    """A URL without its secrets; that of a file is not changed."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return masked_servers(url)
    if scheme in _FILES:
        return url
    credentials, at, place = rest.rpartition("@")
    return (
        f"{_word(scheme)}://{_user(scheme, credentials)}{at}{_where(scheme, place)}{_query(place)}"
    )


def place_of(url: str) -> str:
    """Server and path of a URL, without credentials and parameters."""
    scheme, _, rest = url.partition("://")
    return _where(scheme, rest.rpartition("@")[2])


def masked_servers(text: str) -> str:
    """A list of servers, HOST:PORT separated by commas, without credentials."""
    return f"{MASK}@{text.rpartition('@')[2]}" if "@" in text else text


def masked_text(text: str) -> str:
    """A text of a library with every URL in it masked, also of proxies."""
    return _ADDRESS.sub(lambda found: masked_url(found[0]), text)


def without_quoted(text: str) -> str:
    """The text of a library's error about a URL, without the quoted parts."""
    return _QUOTED.sub(MASK, text)


def _word(scheme: str) -> str:
    return scheme if _USER.fullmatch(scheme) else MASK


def _user(scheme: str, credentials: str) -> str:
    user, colon, _ = credentials.partition(":")
    if not _USER.fullmatch(user) or (user and not colon and scheme not in _SHOWS_USER):
        return MASK
    return f"{user}:{MASK}" if colon else user


def _where(scheme: str, place: str) -> str:
    address, _, _ = place.partition("#")[0].partition("?")
    servers, slash, path = address.partition("/")
    shown = servers if _PLACES.fullmatch(servers) else MASK
    if scheme in _PAGES:
        return (
            shown
            + slash
            + "/".join(each if _STEP.fullmatch(each) else MASK for each in path.split("/"))
        )
    return shown + (slash + path if _PATH.fullmatch(slash + path) else f"/{MASK}")


def _query(place: str) -> str:
    address, hash_, _ = place.partition("#")
    _, mark, query = address.partition("?")
    shown = "&".join(map(_parameter, query.replace(";", "&").split("&")))
    return f"{mark}{shown}{f'#{MASK}' if hash_ else ''}"


def _parameter(pair: str) -> str:
    name, equals, said = pair.partition("=")
    if name.lower() in HARMLESS and _SAID.fullmatch(said):
        return pair
    return f"{name}={MASK}" if equals and _USER.fullmatch(name) else MASK if pair else ""
