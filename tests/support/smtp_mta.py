"""A real mail server, Exim, run by the tests: on ports of loopback, in a folder of its own, without any rights."""

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from carteiro.model import MessageId
from support.smtp_certificates import Authority, an_authority
from support.smtp_server import HOST, PASSWORD, USER

_NOBODY = "nobody"  # Exim refuses to be root
_PATIENCE = 10.0  # seconds

_CONFIGURATION = r"""
exim_user = {uid}
exim_group = {gid}
admin_groups = {gid}
trusted_users = {uid}
deliver_drop_privilege = true
keep_environment =
primary_hostname = mta.test
spool_directory = {folder}/spool
log_file_path = {folder}/%slog
pid_file_path = {folder}/exim.pid
daemon_smtp_ports = {port} : {tls_port}
tls_on_connect_ports = {tls_port}
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = {folder}/chain.pem
tls_privatekey = {folder}/key.pem
auth_advertise_hosts = ${{if eq{{$tls_in_cipher}}{{}}{{}}{{*}}}}
smtputf8_advertise_hosts = *
smtp_accept_max = 100
smtp_accept_queue_per_connection = 0
acl_smtp_rcpt = recipient
acl_smtp_data = content

begin acl
recipient:
  deny local_parts = nobody-here
       message = 5.1.1 No such user
  defer local_parts = greylisted
       message = 4.7.1 Greylisted, try again later
  accept authenticated = *
  deny message = 5.7.1 Relaying denied

content:
  deny condition = ${{if match{{$message_body}}{{spam}}}}
       message = 5.6.0 We do not like it
  accept

begin routers
everybody:
  driver = accept
  transport = maildir

begin transports
maildir:
  driver = appendfile
  directory = {folder}/mail
  maildir_format
  create_directory

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_condition = ${{if and{{{{eq{{$auth2}}{{{user}}}}}{{eq{{$auth3}}{{{password}}}}}}}}}
  server_set_id = $auth2
"""


@dataclass
class Mta:
    """The server; ``start`` and ``stop`` as often as needed, its ports stay."""

    folder: Path
    port: int
    tls_port: int
    authority: Authority
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Have it listen."""
        owner = _owner()
        command = [_program(), "-C", str(self.folder / "exim.conf"), "-bdf"]
        as_root = os.getuid() == 0
        with (self.folder / "output").open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                user=owner.pw_uid if as_root else None,
                group=owner.pw_gid if as_root else None,
                extra_groups=[owner.pw_gid] if as_root else None,
            )
        _wait_for(self.port, self._process, self.folder / "output")

    def stop(self) -> None:
        """End it, and the connections to it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE)
            self._process = None

    async def mails(self, message: MessageId, *, count: int = 1) -> list[bytes]:
        """What was delivered of a message, once so many are there: mail is taken first and delivered then."""
        async with asyncio.timeout(_PATIENCE):
            while len(found := self.delivered(message)) < count:
                await asyncio.sleep(0.02)
        return found

    def delivered(self, message: MessageId) -> list[bytes]:
        """What was delivered of a message so far, a mail for each recipient."""
        mails = [path.read_bytes() for path in (self.folder / "mail").glob("new/*")]
        return [mail for mail in mails if f"\nMessage-ID: <{message}.".encode() in mail]

    def log(self) -> str:
        """What it wrote down of all this."""
        return (self.folder / "mainlog").read_text("utf-8")


@contextmanager
def an_mta() -> Iterator[Mta]:
    """A running mail server; where there is none to run, the tests are skipped, in CI they fail."""
    if not _program():
        text = "exim4 is missing: run make services"
        pytest.fail(text) if os.environ.get("CI") else pytest.skip(text)
    with tempfile.TemporaryDirectory(prefix="carteiro-mta-") as name:
        mta = _made(Path(name))
        mta.start()
        try:
            yield mta
        finally:
            mta.stop()


def _made(folder: Path) -> Mta:
    owner = _owner()
    authority = an_authority(folder)
    authority.write(folder)
    mta = Mta(folder, _free_port(), _free_port(), authority)
    configuration = _CONFIGURATION.format(
        folder=folder,
        port=mta.port,
        tls_port=mta.tls_port,
        uid=owner.pw_uid,
        gid=owner.pw_gid,
        user=USER,
        password=PASSWORD,
    )
    (folder / "exim.conf").write_text(configuration, "utf-8")
    if os.getuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    return mta


def _program() -> str:
    return shutil.which("exim4", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""


def _owner() -> pwd.struct_passwd:
    return pwd.getpwnam(_NOBODY) if os.getuid() == 0 else pwd.getpwuid(os.getuid())


def _free_port() -> int:
    with closing(socket.create_server((HOST, 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int, process: "subprocess.Popen[bytes]", output: Path) -> None:
    for _ in range(500):
        try:
            with closing(socket.create_connection((HOST, port), timeout=_PATIENCE)) as connection:
                connection.settimeout(_PATIENCE)
                if connection.recv(3) == b"220":
                    return
        except ConnectionError:
            assert process.poll() is None, output.read_text("utf-8")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.02)
    pytest.fail(f"the mail server does not listen: {output.read_text('utf-8')}")
