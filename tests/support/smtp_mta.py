"""A real mail server, Exim, run by the tests: on loopback ports, in a separate folder, without any rights."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from carteiro.model import MessageId
from support.services import HOST, Service, a_folder, free_port, program
from support.smtp_certificates import an_authority
from support.smtp_server import PASSWORD, USER

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


class Mta(Service):
    """The server, with a port for STARTTLS and one for implicit TLS."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tls_port = free_port()
        self.authority = an_authority(folder)
        self.authority.write(folder)
        owner = folder.stat()
        configuration = _CONFIGURATION.format(
            folder=folder,
            port=self.port,
            tls_port=self.tls_port,
            uid=owner.st_uid,
            gid=owner.st_gid,
            user=USER,
            password=PASSWORD,
        )
        self._file.write_text(configuration, "utf-8")
        for path in folder.iterdir():
            os.chown(path, owner.st_uid, owner.st_gid)

    def command(self) -> list[str]:
        """The server in the foreground."""
        return [program("exim4"), "-C", str(self._file), "-bdf"]

    def is_ready(self) -> bool:
        """True if it sends its greeting."""
        try:
            with closing(socket.create_connection((HOST, self.port), timeout=_PATIENCE)) as caller:
                return caller.recv(3) == b"220"
        except OSError:
            return False

    async def mails(self, message: MessageId, *, count: int = 1) -> list[bytes]:
        """The delivered mails of a message, once there are this many: mail is accepted first and delivered later."""
        async with asyncio.timeout(_PATIENCE):
            while len(found := self.delivered(message)) < count:
                await asyncio.sleep(0.02)
        return found

    def delivered(self, message: MessageId) -> list[bytes]:
        """The delivered mails of a message so far, one for each recipient."""
        mails = [path.read_bytes() for path in (self.folder / "mail").glob("new/*")]
        return [mail for mail in mails if f"\nMessage-ID: <{message}.".encode() in mail]

    def log(self) -> str:
        """Its log."""
        return (self.folder / "mainlog").read_text("utf-8")

    @property
    def _file(self) -> Path:
        return self.folder / "exim.conf"


@contextmanager
def an_mta() -> Iterator[Mta]:
    """A running mail server; without the program the tests are skipped, in CI they fail."""
    program("exim4")
    with a_folder("mta") as folder:
        mta = Mta(folder)
        mta.start()
        try:
            yield mta
        finally:
            mta.stop()
