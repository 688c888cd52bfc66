"""What a transport raises when the backend did not say yes; the texts are redacted, and say what to do."""

from __future__ import annotations

import requests


class NotTakenError(Exception):
    """The backend did not take an event.

    ``is_refusal``: it has read the event, and would refuse it again. Otherwise another try may succeed.
    """

    def __init__(self, text: str, *, is_refusal: bool = False) -> None:
        super().__init__(text)
        self.is_refusal = is_refusal


class UnreachableError(NotTakenError):
    """No connection, or no TLS: the backend has not seen the event."""


class AnswerTimeoutError(NotTakenError):
    """There was no answer in time, so that the backend may have taken the event, or not."""


class LoginError(NotTakenError):
    """The backend does not know us, or does not let us."""


class AnswerError(NotTakenError, requests.HTTPError):
    """An HTTP answer that is no yes.

    ``response`` has the status, ``Retry-After``, the content type and the start of the body, redacted; nothing else.
    Whether a status is a refusal is left to who reads it.
    """

    def __init__(self, text: str, response: requests.Response) -> None:
        NotTakenError.__init__(self, text)
        self.response = response
