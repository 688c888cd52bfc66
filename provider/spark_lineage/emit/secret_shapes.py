"""Secrets that are known by their shape, whatever key stands before them.

Every pattern starts at a place that it cannot start at again within its own reach (a look-behind, a literal or a
bounded repeat), which keeps the time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from spark_lineage.emit.secret_keys import MASK, is_harmless_value, is_secret_key

_USERINFO = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,31}|)://"
    # The second form is the legacy s3a://KEY:SECRET@bucket, whose secret may hold a "/"; a port is no password.
    r"(?P<userinfo>[^\s/?#\"'<>]*|[^\s/?#\"'<>:@]+:(?!\d+/)[^\s?#\"'<>:@]+)@"
)
_ORACLE_LOGIN = re.compile(
    r"(?P<keep>jdbc:oracle:\w{1,16}:)[^\s@\"/]{1,128}/[^\s@\"]{0,128}(?:\"[^\"\s]{1,128}\")?@", re.IGNORECASE
)
_PEM = re.compile(r"(?P<begin>-----BEGIN [A-Z0-9 ]{1,40}-----).*?(?P<end>-----END [A-Z0-9 ]{1,40}-----|\Z)", re.DOTALL)
_SCHEME_TOKEN = re.compile(
    r"\b(?P<scheme>Bearer|Basic)(?P<gap>[ \t]{1,8})(?P<token>[\w.~+/=\-]{6,}+)", re.IGNORECASE | re.ASCII
)
_AWS_PAIR = re.compile(
    r"(?<![A-Z0-9])A(?:KIA|SIA|ROA|IDA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"(?P<rest>(?P<gap>[\s:/,;|\"']{1,4})[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=]))?"
)
_TOKENS = re.compile(
    r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])|(?<=%3D)|(?<=%20))"
    r"(?:eyJ[\w\-]{5,}+\.[\w\-]{2,}+(?:\.[\w\-]*+)?"
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+|glpat-[\w\-]{16,}+|xox[a-z]-[A-Za-z0-9\-]{10,}+"
    r"|dapi[0-9a-f]{32}(?:-\d)?|sk-(?:(?:ant|proj)-[\w\-]{20,}+|[A-Za-z0-9]{20,}+[\w\-]*+)|AIza[\w\-]{35}|hf_[A-Za-z0-9]{30,}+"
    r"|npm_[A-Za-z0-9]{30,}+|pypi-[\w\-]{30,}+|dop_v1_[0-9a-f]{40,}+)(?![A-Za-z0-9])",
    re.ASCII,
)
# Of these, what no dataset is named like: JSON web tokens, and GitHub's.
_UNMISTAKABLE = re.compile(
    r"(?<![A-Za-z0-9_\-])"
    r"(?:eyJ[\w\-]{5,}+\.eyJ[\w\-]{2,}+(?:\.[\w\-]*+)?|gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_\w{20,}+)(?![A-Za-z0-9])",
    re.ASCII,
)
_SQL_LOGIN = re.compile(
    r"(?P<keep>\b(?:IDENTIFIED BY|PASSWORD)[ \t]{1,8})(?P<quote>[\"'])[^\"'\n]++(?P=quote)", re.IGNORECASE
)
_SLACK_HOOK = re.compile(r"(?P<keep>hooks\.slack\.com/services/)[\w/\-]{8,}+", re.ASCII)
_XML_ELEMENT = re.compile(r"<(?P<key>[\w.\-]++)(?P<gap>)>(?P<value>[^<]++)(?=</)")
_XML_PROPERTY = re.compile(r"<name>(?P<key>[^<]++)(?P<gap></name>\s{0,64}<value>)(?P<value>[^<]++)(?=</value>)")

_PROSE = frozenset(
    [
        "token",
        "tokens",
        "authentication",
        "authorization",
        "auth",
        "scheme",
        "schemes",
        "realm",
        "header",
        "headers",
        "format",
        "challenge",
    ]
)
# With these a word alone before "@" may be a token; with others it is a place (an Azure container) or a mere login.
_TOKEN_AS_USER = frozenset(
    {"http", "https", "git", "git+http", "git+https", "mongodb", "redis", "rediss", "amqp", "amqps"}
)


def _mask_userinfo(match: re.Match[str]) -> str:
    userinfo, scheme = match["userinfo"], match["scheme"]
    if ":" not in userinfo and (not userinfo or scheme.lower() not in _TOKEN_AS_USER):
        return match[0]
    return f"{scheme}://{MASK}@"


def _mask_scheme_token(match: re.Match[str]) -> str:
    token = match["token"]
    if match["scheme"].lower() == "bearer":
        is_token = token.rstrip(".").lower() not in _PROSE
    else:
        is_token = re.search(r"[0-9=]|[a-z][A-Z]", token) is not None
    return f"{match['scheme']}{match['gap']}{MASK}" if is_token else match[0]


def _mask_aws(match: re.Match[str]) -> str:
    return f"{MASK}{match['gap']}{MASK}" if match["rest"] else MASK


def _mask_pem(match: re.Match[str]) -> str:
    return f"{match['begin']}{MASK}{match['end']}"


def _mask_xml(match: re.Match[str]) -> str:
    if not is_secret_key(match["key"].strip()) or is_harmless_value(match["value"]):
        return match[0]
    start = match.start()
    return f"{match[0][: match.start('value') - start]}{MASK}"


_SHAPES: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    ("-----BEGIN ", _PEM, _mask_pem),
    ("</", _XML_PROPERTY, _mask_xml),
    ("</", _XML_ELEMENT, _mask_xml),
    ("@", _USERINFO, _mask_userinfo),
    ("@", _ORACLE_LOGIN, rf"\g<keep>{MASK}@"),
    ("", _SCHEME_TOKEN, _mask_scheme_token),
    ("A", _AWS_PAIR, _mask_aws),
    ("", _TOKENS, MASK),
    ("", _SQL_LOGIN, rf"\g<keep>\g<quote>{MASK}\g<quote>"),
    ("hooks.slack.com", _SLACK_HOOK, rf"\g<keep>{MASK}"),
)


def mask_name_shapes(name: str) -> str:
    """The name of a dataset without the logins of its URLs, and without tokens that nothing else looks like.

    ``abfss://container@account`` keeps its container.
    """
    if "@" in name:
        name = _ORACLE_LOGIN.sub(rf"\g<keep>{MASK}@", _USERINFO.sub(_mask_userinfo, name))
    return _UNMISTAKABLE.sub(MASK, _AWS_PAIR.sub(_mask_aws, name))


def mask_shapes(text: str) -> str:
    """The text with everything masked that looks like a secret."""
    for literal, pattern, replacement in _SHAPES:
        # The literal is a part of every match: looking for it first makes plain text cheap.
        if literal in text:
            text = pattern.sub(replacement, text)
    return text
