"""Certificates of one's own for TLS on the loopback: an authority, a server's, a client's."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lineage_backends.processes import HOST

_LIFE = timedelta(days=2)


@dataclass(frozen=True)
class Certificates:
    """PEM files; a key is in a file of its own."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path

    def server_context(self, *, wants_client: bool) -> ssl.SSLContext:
        """TLS for a server, which may want to see a certificate of the authority from its clients."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server, self.server_key)
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority)
        return context


def make_certificates(directory: Path) -> Certificates:
    """New ones, as files in ``directory``."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("authority of the tests")
    basic = x509.BasicConstraints(ca=True, path_length=0)
    authority = _signed(authority_name, authority_key, authority_name, authority_key, [(basic, True)])
    _write(directory / "authority.pem", authority.public_bytes(serialization.Encoding.PEM))
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")])
    for owner, extensions in (("server", [(host, False)]), ("client", [])):
        key = ec.generate_private_key(ec.SECP256R1())
        made = _signed(_name(f"{owner} of the tests"), key, authority_name, authority_key, extensions)
        _write(directory / f"{owner}.pem", made.public_bytes(serialization.Encoding.PEM))
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        _write(directory / f"{owner}.key", key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    names = ("authority.pem", "server.pem", "server.key", "client.pem", "client.key")
    return Certificates(*(directory / name for name in names))


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = (
        builder.serial_number(x509.random_serial_number()).not_valid_before(now - _LIFE).not_valid_after(now + _LIFE)
    )
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    # Python 3.13 verifies strictly, and wants both.
    for extension, is_critical in [(subject_key, False), (issuer_id, False), *extensions]:
        builder = builder.add_extension(extension, is_critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
