"""The keys of the links of one run: made at its start, held in memory only.

A certificate that the run signs itself proves both ends to each other in TLS 1.3 (whoever has the
private key belongs to the run), and a secret does the same on links in clear. Keys are handed out
over a channel that is private already, never through a file, a command line or a log.
"""

from __future__ import annotations

import os
import secrets
import ssl
import subprocess
from dataclasses import dataclass, field

from tianji.errors import UsageError

SECRET_BYTES = 32
_NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, which `ssl` does not name
_MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 "
    "-subj /CN=tianji -keyout /dev/stdout"
)


@dataclass(frozen=True, slots=True)
class LinkKeys:
    """What an agent must have to take part in a run. Nothing of it is ever printed."""

    secret: bytes = field(repr=False)
    pem: str = field(repr=False)
    """The run's certificate and its private key; empty where links are in clear."""

    @staticmethod
    def make(is_encrypted: bool = True) -> LinkKeys:
        """Make the keys of a new run."""
        return LinkKeys(secrets.token_bytes(SECRET_BYTES), _new_pem() if is_encrypted else "")

    def to_text(self) -> str:
        return f"{self.secret.hex()}\n{self.pem}"

    @staticmethod
    def from_text(text: str) -> LinkKeys:
        secret, _, pem = text.partition("\n")
        return LinkKeys(bytes.fromhex(secret), pem)

    def listening(self) -> ssl.SSLContext:
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # a session of ours is resumed, never one of TLS
        return context

    def connecting(self) -> ssl.SSLContext:
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, protocol: ssl._SSLMethod) -> ssl.SSLContext:
        """Return a context in which each end shows the run's certificate and accepts no other."""
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate is the run's, whatever the host is called
        context.verify_mode = ssl.CERT_REQUIRED
        # The certificate lives as long as the run, and the clocks of two hosts may differ.
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
        context.load_verify_locations(cadata=self.pem[self.pem.index("-----BEGIN CERT") :])
        with os.fdopen(os.memfd_create("tianji-keys"), "w+") as file:  # `ssl` wants a path
            file.write(self.pem)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return context


def _new_pem() -> str:
    """Return a new certificate, signed by itself, behind its private key."""
    try:
        made = subprocess.run(
            _MAKE_CERTIFICATE.split(), capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(
            "The links between hosts cannot be encrypted: the command `openssl`, which makes the "
            f"run's certificate, failed ({type(error).__name__}). Install the package openssl on "
            "the host that starts the run."
        ) from None
    return made.stdout
