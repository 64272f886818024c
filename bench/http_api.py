"""The HTTP API: single posts and batches, each compared with single posts to a peer that stores nothing."""

import json
from collections.abc import Callable

from figures import Figure, in_pairs, print_table, row
from http_server import Server, serving

_CONNECTIONS = 64
_BATCH = 100
_SEND, _SEND_MANY = "/v1/email/send", "/v1/email/batch"
_MAIL = {
    "to": "customer@example.com",
    "subject": "Order 1",
    "html": "<!doctype html><html><body><h1>Your order</h1>"
    + "<p>It is on its way, see <a href='https://shop.example/o/1'>here</a>.</p>" * 8
    + "</body></html>",
}


def measure(mails: int, pairs: int) -> None:
    """Measure and print."""
    with serving("ours.http") as ours, serving("peers.fastapi_nothing") as peer:
        single = _Last(lambda: _single(ours, "POST /v1/email/send, 202 after fsync", mails))
        nothing = _Last(lambda: _single(peer, "FastAPI on uvicorn, storing nothing", mails))
        many = _Last(lambda: _many(ours, mails))
        beside_peer = in_pairs("single posts / peer", single, nothing, rounds=pairs)
        many_beside_peer = in_pairs("batches / peer", many, nothing, rounds=pairs)
    print(f"\nHTTP API: {_CONNECTIONS} connections, the load from another process\n")
    print_table(
        ["what", "messages/s", "CPU us each", "x peer"],
        [row(each.figure, nothing.figure) for each in (single, many, nothing)],
    )
    print(f"\nSingle posts / FastAPI storing nothing: {beside_peer} (median, spread)")
    print(f"Batches of {_BATCH} / FastAPI storing nothing: {many_beside_peer} (median, spread)")


class _Last:
    """A measure that remembers its last figure."""

    def __init__(self, measure: Callable[[], Figure]) -> None:
        self._measure = measure
        self.figure: Figure

    def __call__(self) -> float:
        self.figure = self._measure()
        return self.figure.per_second


def _single(server: Server, name: str, mails: int) -> Figure:
    return server.load(
        name,
        path=_SEND,
        body=json.dumps(_MAIL),
        status=202,
        requests=mails,
        connections=_CONNECTIONS,
    )


def _many(server: Server, mails: int) -> Figure:
    return server.load(
        f"POST /v1/email/batch of {_BATCH}",
        path=_SEND_MANY,
        body=json.dumps({"messages": [_MAIL] * _BATCH}),
        status=200,
        requests=max(_CONNECTIONS, 4 * mails // _BATCH),
        each=_BATCH,
        connections=_CONNECTIONS,
    )
