from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from spark_lineage.http_client import Access, HttpClient, NoAnswerError, origin_of
from spark_lineage.watch.dialect import get_json

if TYPE_CHECKING:
    from lineage_backends.certificates import Certificates


@pytest.fixture
def secure(loopbacks: Callable[..., Any], certificates: Certificates) -> Callable[..., str]:
    """Starts a server with TLS and gives a URL of it that answers ``[1]``."""

    def start(*, wants_client: bool = False) -> str:
        loopback = loopbacks(certificates.server_context(wants_client=wants_client))
        return str(loopback.reply("/a", json=[1])).replace("http:", "https:")

    return start


def test_an_unknown_authority_is_refused(secure: Callable[..., str]) -> None:
    with pytest.raises(NoAnswerError, match=r"TLS failed: .*certificate verify failed"):
        get_json(HttpClient(), secure())


def test_an_authority_of_the_connection(secure: Callable[..., str], certificates: Certificates) -> None:
    url = secure()
    assert get_json(HttpClient({origin_of(url): Access(verify=str(certificates.authority))}), url) == [1]
    # A driver's UI has the same authority.
    assert get_json(HttpClient(verify=str(certificates.authority)), url) == [1]


def test_an_authority_of_the_environment(
    secure: Callable[..., str], certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.authority))
    assert get_json(HttpClient(), secure()) == [1]


def test_certificates_are_not_checked_where_the_user_says_so(secure: Callable[..., str]) -> None:
    url = secure()
    assert get_json(HttpClient({origin_of(url): Access(verify=False)}), url) == [1]


def test_a_client_certificate_goes_to_named_hosts_only(secure: Callable[..., str], certificates: Certificates) -> None:
    url = secure(wants_client=True)
    authority = str(certificates.authority)
    access = Access(verify=authority, cert=(str(certificates.client), str(certificates.client_key)))
    assert get_json(HttpClient({origin_of(url): access}), url) == [1]
    with pytest.raises(NoAnswerError):
        get_json(HttpClient(verify=authority), url)
