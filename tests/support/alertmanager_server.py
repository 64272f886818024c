"""A real Alertmanager, run by the tests; it calls a webhook of theirs, or none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from support.services import HOST, Service, a_folder, program

_PROGRAM = "prometheus-alertmanager"


class AlertmanagerServer(Service):
    """The server, and its alerts."""

    def __init__(self, folder: Path, *, webhook: str = "") -> None:
        super().__init__(folder)
        self._file.write_text(json.dumps(_settings(webhook)), "utf-8")  # JSON is YAML

    @property
    def url(self) -> str:
        """Its address; its API is at `/api/v2`."""
        return f"http://{HOST}:{self.port}"

    def command(self) -> list[str]:
        """The server in the foreground, without a cluster."""
        return [
            program(_PROGRAM),
            f"--config.file={self._file}",
            f"--storage.path={self.folder / 'kept'}",
            f"--web.listen-address={HOST}:{self.port}",
            "--cluster.listen-address=",
        ]

    def is_ready(self) -> bool:
        """True if it takes alerts."""
        try:
            return httpx.get(f"{self.url}/-/ready", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def alerts(self) -> list[dict[str, Any]]:
        """All active alerts, as its API shows them."""
        answer = httpx.get(f"{self.url}/api/v2/alerts", trust_env=False).raise_for_status()
        found: list[dict[str, Any]] = answer.json()
        return found

    @property
    def _file(self) -> Path:
        return self.folder / "alertmanager.yml"


def _settings(webhook: str) -> dict[str, Any]:
    receiver: dict[str, Any] = {"name": "tests"}
    if webhook:
        receiver["webhook_configs"] = [{"url": webhook, "send_resolved": True}]
    route = {"receiver": "tests", "group_wait": "10ms", "group_interval": "10ms"}
    return {"route": route, "receivers": [receiver]}


@contextmanager
def an_alertmanager(*, webhook: str = "") -> Iterator[AlertmanagerServer]:
    """A running server; without the program the tests are skipped, in CI they fail."""
    program(_PROGRAM)
    with a_folder("alertmanager") as folder:
        server = AlertmanagerServer(folder, webhook=webhook)
        server.start()
        try:
            yield server
        finally:
            server.stop()
