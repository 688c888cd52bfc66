from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from spark_lineage.watch.rest import Access, NoAnswerError, RestClient, origin_of


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "spark")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


@pytest.fixture
def secure(loopbacks: Callable[..., Any], certificate: tuple[Path, Path]) -> Callable[..., str]:
    """Starts a server with TLS and gives a URL of it that answers ``[1]``."""

    def start(*, wants_certificate: bool = False) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if wants_certificate:
            context.load_verify_locations(certificate[0])
            context.verify_mode = ssl.CERT_REQUIRED
        loopback = loopbacks(context)
        return str(loopback.reply("/a", json=[1])).replace("http:", "https:")

    return start


def test_an_unknown_authority_is_refused(secure: Callable[..., str]) -> None:
    with pytest.raises(NoAnswerError, match=r"TLS failed: .*certificate verify failed"):
        RestClient().get_json(secure())


def test_an_authority_of_the_connection(secure: Callable[..., str], certificate: tuple[Path, Path]) -> None:
    url = secure()
    assert RestClient({origin_of(url): Access(verify=str(certificate[0]))}).get_json(url) == [1]
    # A driver's UI has the same authority.
    assert RestClient(verify=str(certificate[0])).get_json(url) == [1]


def test_an_authority_of_the_environment(
    secure: Callable[..., str], certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
    assert RestClient().get_json(secure()) == [1]


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_certificates_are_not_checked_where_the_user_says_so(secure: Callable[..., str]) -> None:
    url = secure()
    assert RestClient({origin_of(url): Access(verify=False)}).get_json(url) == [1]


def test_a_client_certificate_goes_to_named_hosts_only(
    secure: Callable[..., str], certificate: tuple[Path, Path]
) -> None:
    url = secure(wants_certificate=True)
    authority, key = map(str, certificate)
    access = Access(verify=authority, cert=(authority, key))
    assert RestClient({origin_of(url): access}).get_json(url) == [1]
    with pytest.raises(NoAnswerError):
        RestClient(verify=authority).get_json(url)
