"""The HTTP transport: one request an event, bounded in time; only a 2xx that is no login page accepts it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import requests
from openlineage.client.serde import Serde
from openlineage.client.transport.http import HttpTransport
from requests.structures import CaseInsensitiveDict

from spark_lineage.deliver.sender import MAX_BODY_BYTES, SUCCESSES, description, is_page
from spark_lineage.deliver.transports.errors import NotTakenError, UnreachableError, cause_of
from spark_lineage.launch.bounded_run import BoundedRun
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from openlineage.client.client import Event

# The outbox repeats; a transport that does so too would hold the task. False: urllib3 says itself what went wrong.
NO_RETRY: dict[str, Any] = {
    "total": 0, "connect": 0, "read": False, "status": 0, "other": 0, "backoff_factor": 0, "status_forcelist": [],
    "respect_retry_after_header": False,
}  # fmt: skip

_CHUNK_BYTES = 1_024
_SHOWN_HEADERS = ("Retry-After", "Content-Type")


class AnsweredHttpTransport(HttpTransport):
    """Posts an event, and raises unless it was accepted.

    Redirects are not followed: the event would be lost on the way, and the credentials with it. The time-out holds for
    the whole exchange. A status is the answer; what is wrong with the body behind it changes nothing.
    """

    def emit(self, event: Event) -> requests.Response:
        """Send one event.

        :raises NotTakenError: for no answer, for one other than 2xx, and for an HTML page; it is an
            ``UnreachableError`` where the backend has not seen the event
        """
        body, headers = self._prepare_request(Serde.to_json(event))
        answer = self._answer(body.encode() if isinstance(body, str) else body, headers)
        if answer.status_code not in SUCCESSES or is_page(answer.content):
            raise NotTakenError(describe(answer), response=answer)
        return answer

    def use_certificates(self, tls: Mapping[str, Any]) -> None:
        """Take authority and certificate of ``sslContext``, which openlineage-python before 1.54 ignores."""
        self.verify = tls.get("caCertPath") or tls.get("ca_cert_path") or self.verify
        certificate = tls.get("clientCertPath") or tls.get("client_cert_path")
        key = tls.get("clientKeyPath") or tls.get("client_key_path")
        self.cert = (certificate, key) if certificate and key else certificate

    def probe(self) -> requests.Response:
        """Post an empty body, which is no event for any backend, with the credentials; return whatever is answered.

        :raises NotTakenError: when nothing is answered
        """
        _, headers = self._prepare_request("")
        headers.pop("Content-Encoding", None)
        return self._answer(b"", headers)

    def _answer(self, body: bytes, headers: dict[str, str]) -> requests.Response:
        answers: list[requests.Response] = []
        content = bytearray()
        kind: type[NotTakenError] = UnreachableError
        # A thread, because no limit of an HTTP client holds for all that a server, a resolver or a proxy may do.
        exchange = BoundedRun(lambda: self._exchange(body, headers, answers, content), "spark-lineage-http")
        try:
            exchange.wait(self.timeout)
            kind, problem = NotTakenError, f"no answer within {self.timeout:g} s"
        except requests.exceptions.SSLError as error:
            problem = f"TLS failed: {cause_of(error)}; look at 'verify' and 'client_cert'"
        except requests.exceptions.ProxyError as error:
            problem = f"the proxy cannot be used: {cause_of(error)}"
        except requests.ConnectTimeout:
            problem = f"no connection within {self.timeout:g} s"
        except requests.Timeout:
            kind, problem = NotTakenError, f"no answer within {self.timeout:g} s"
        except OSError as error:
            # Those of requests, and what its adapter says of certificates that are not there.
            problem = f"no answer: {cause_of(error)}"
        except UnicodeError:
            problem = "a header holds a letter that HTTP cannot carry"
        if answers:
            return _kept(answers[0], bytes(content))
        # Outside of the handlers: the error of requests, with request and headers, must not hang on ours.
        raise kind(f"{redact(urljoin(self.url, self.endpoint).partition('?')[0])}: {problem}")

    def _exchange(
        self, body: bytes, headers: dict[str, str], answers: list[requests.Response], content: bytearray
    ) -> None:
        """Send; the answer is given when its headers have come, and the start of its body when there is some of it."""
        with self.session.post(
            urljoin(self.url, self.endpoint),
            data=body,
            headers=headers,
            timeout=self.timeout,
            verify=self.verify,
            cert=getattr(self, "cert", None),
            allow_redirects=False,
            stream=True,
            # Otherwise requests would put the login of ~/.netrc in the place of ours.
            auth=(lambda request: request) if "Authorization" in headers else None,
        ) as response:
            answers.append(response)
            end = time.monotonic() + self.timeout
            with suppress(Exception):
                while len(content) < MAX_BODY_BYTES and time.monotonic() < end:
                    # What has come, and no more is waited for.
                    chunk = response.raw.read1(_CHUNK_BYTES, decode_content=True)
                    if not chunk:
                        break
                    content += chunk


def describe(answer: requests.Response) -> str:
    """Return what is wrong with an answer, and what to do, redacted."""
    location = answer.headers.get("Location")
    return description(answer.url, answer.status_code, answer.reason or "", location, answer.content)


def _kept(response: requests.Response, body: bytes) -> requests.Response:
    """What may be known of an answer: no request, no cookies, and the body redacted."""
    kept = requests.Response()
    kept.status_code = response.status_code
    kept.reason = redact(str(response.reason or ""))
    kept.url = redact(response.url)
    headers = {name: redact(response.headers[name]) for name in _SHOWN_HEADERS if name in response.headers}
    if "Location" in response.headers:
        headers["Location"] = redact(response.headers["Location"].partition("?")[0])
    kept.headers = CaseInsensitiveDict(headers)
    kept.encoding = "utf-8"
    kept._content = redact(body.decode("utf-8", "replace")).encode()  # noqa: SLF001 - the only way to give one a body
    return kept
