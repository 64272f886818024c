"""Certificates made on demand by a private authority."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Authority:
    """Signs certificates; a client that trusts ``ca_file`` trusts them."""

    ca: trustme.CA
    ca_file: str

    def context(self, name: str = "127.0.0.1") -> ssl.SSLContext:
        """The TLS context of a server with this name."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.ca.issue_cert(name).configure_cert(context)
        return context

    def write(self, folder: Path, name: str = "127.0.0.1") -> tuple[Path, Path]:
        """A certificate and its key in files."""
        certificate = self.ca.issue_cert(name)
        chain, key = folder / "chain.pem", folder / "key.pem"
        certificate.private_key_pem.write_to_path(str(key))
        chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        return chain, key


def an_authority(folder: Path) -> Authority:
    """A new authority whose own certificate is in this folder."""
    ca = trustme.CA()
    path = folder / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return Authority(ca, str(path))
