"""Secrets that are known by their shape, whatever key stands before them.

Every pattern starts at a place that it cannot start at again within its own reach (a look-behind, a literal or a
bounded repeat), which keeps the time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from spark_lineage.secrets.secret_keys import MASK, Prefilter, is_harmless_value, is_secret_key

_USERINFO = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,31}|)://"
    # The second form is the legacy s3a://KEY:SECRET@bucket, whose secret may hold a "/"; a port is no password.
    # Behind "user:" there may be "?" and "#", up to the last "@" before what a query, a path or a list has, and one
    # blank.
    r"(?P<userinfo>[^\s/?#\"'<>:@]*:(?!\d+(?!\w))[^\s/?#\"'<>]*[?#][^\s/\"'<>=&,;]*"
    r"|[^\s/?#\"'<>]*"
    r"|[^\s/?#\"'<>:@]*:(?!\d+(?!\w))(?:[^\s\"'<>:@]+|[^\s/\"'<>:@,;]+ [^\s/\"'<>:@,;]+))@"
)
_ORACLE_LOGIN = re.compile(
    r"(?P<keep>jdbc:oracle:\w{1,16}:)[^\s@\"/]{1,128}/[^\s@\"]{0,128}(?:\"[^\"\s]{1,128}\")?@", re.IGNORECASE
)
_PEM = re.compile(r"(?P<begin>-----BEGIN [A-Z0-9 ]{1,40}-----).*?(?P<end>-----END [A-Z0-9 ]{1,40}-----|\Z)", re.DOTALL)
_SCHEME_TOKEN = re.compile(
    r"\b(?P<scheme>Bearer|Basic)(?P<gap>[ \t]++)(?P<token>[\w.~+/=\-]{6,}+)", re.IGNORECASE | re.ASCII
)
_SEPARATOR = re.compile(r"\(|[\"']?[ \t]*+[:=]")
_AWS_PAIR = re.compile(
    r"(?<![A-Z0-9])A(?:KIA|SIA|ROA|IDA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"(?P<rest>(?P<gap>[\s:/,;|\"']{1,4})[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=]))?"
)
# How tokens begin, and how they go on.
_PREFIXES = {
    "eyJ": r"[\w\-]{5,}+\.[\w\-]{2,}+(?:\.[\w\-]*+)?",
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,}+"),
    "github_pat_": r"\w{20,}+",
    **dict.fromkeys(("glpat-", "glrt-"), r"[\w\-]{16,}+"),
    "xox": r"[a-z]-[A-Za-z0-9\-]{10,}+",
    "xapp-": r"[A-Za-z0-9\-]{10,}+",
    "dapi": r"[0-9a-f]{32}(?:-\d)?",
    "sk-": r"(?:(?:ant|proj)-[\w\-]{20,}+|[A-Za-z0-9]{20,}+[\w\-]*+)",
    **dict.fromkeys(("sk_", "rk_"), r"(?:live|test)_[A-Za-z0-9]{10,}+"),
    "whsec_": r"[A-Za-z0-9+/=]{16,}+",
    # Words that a namespace called "hvs" could hold have no capitals.
    **dict.fromkeys(("hvs.", "hvb."), r"(?=[a-z0-9_\-]{0,64}[A-Z])[\w\-]{10,}+"),
    **dict.fromkeys(("ya29.", "GOCSPX-"), r"[\w\-]{10,}+"),
    "AIza": r"[\w\-]{35}",
    **dict.fromkeys(("hf_", "npm_"), r"[A-Za-z0-9]{30,}+"),
    "pypi-": r"[\w\-]{30,}+",
    "dop_v1_": r"[0-9a-f]{40,}+",
    "SG.": r"[\w\-]{16,}+\.[\w\-]{16,}+",
    "glsa_": r"\w{20,}+",
    "shpat_": r"[0-9a-f]{32}",
    "NRAK-": r"[A-Z0-9]{20,}+",
    "ATATT": r"[\w\-=]{20,}+",
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{20,}+",
    "dckr_pat_": r"[\w\-]{20,}+",
}
_TOKENS = re.compile(
    r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt])|(?<=%3D)|(?<=%20))(?:"
    + "|".join(re.escape(prefix) + rest for prefix, rest in _PREFIXES.items())
    + ")(?![A-Za-z0-9])",
    re.ASCII,
)
# Of these, what no dataset is named like: JSON web tokens, and GitHub's.
_UNMISTAKABLE = re.compile(
    r"(?<![A-Za-z0-9_\-])"
    r"(?:eyJ[\w\-]{5,}+\.eyJ[\w\-]{2,}+(?:\.[\w\-]*+)?|gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_\w{20,}+)(?![A-Za-z0-9])",
    re.ASCII,
)
_SQL_LOGIN = re.compile(
    r"(?P<keep>\b(?:IDENTIFIED(?:\s{1,8}WITH\s{1,8}[^\s;]{1,64})?\s{1,8}(?:BY|AS)(?:\s{1,8}(?:PASSWORD|VALUES))?\s{1,8}"
    r"|PASSWORD(?:[ \t]{1,8}|[ \t]{1,8}FOR[ \t]{1,8}[^\s;]{1,128}[ \t]{0,8}=[ \t]{0,8})))"
    r"(?P<quote>\\{0,8}[\"'])(?:(?!(?P=quote))[^\n]|(?P=quote){2})+(?P=quote)",
    re.IGNORECASE,
)
# Without quotes it is prose, unless it is written in capitals or belongs to a statement.
_SQL_BARE_LOGIN = re.compile(
    r"(?P<keep>\b(?:IDENTIFIED|(?i:(?:(?:create|alter)\s{1,8}(?:user|role)|connect\s{1,8}to)\s{1,8}[^\s;]{1,128}"
    r"\s{1,8}identified))\s{1,8}(?i:by)\s{1,8})(?!(?i:password|values)\b)[^\s\"'\\;,)]++"
)
# ``curl -u user:password``; two numbers are ids, as ``docker run --user`` takes them.
_FLAG_LOGIN = re.compile(
    r"(?P<keep>(?:(?<![\w\-])--(?:proxy-)?user(?=[\s=,\"'\\])|\bcurl\b(?:(?!\bcurl\b)[^\n])*?[\s\"']-[A-Za-z]{0,8}[uU])"
    r"\\{0,8}[\"']?[ \t,=]*+(?P<quote>\\{0,8}[\"'])?(?!\d++:\d++(?![^\s\"'\\]))[^\s:\"',=/\\]{1,128}:(?!//))"
    r"(?(quote)(?:(?!(?P=quote))[^\n])+|[^\s\"'\\]++)"
)
# How command lines are written, and how JSON and Python write them.
_GAP = r"(?:[\s\"',\\]{1,8}|\\{1,8}[nt])"
_WORD = r"[^\s\"',\\|;&]{1,128}"
_BEFORE = r"(?:(?<![\w.\-:])|(?<=\\[nrt]))"
# Tools whose short flag takes a password; of most others it is a port, a path or a process.
_TOOL_PASSWORD = re.compile(
    rf"(?P<keep>{_BEFORE}(?:"
    rf"(?:sshpass|beeline|cqlsh|(?:docker|podman|nerdctl|helm|oc|az|skopeo|buildah)(?:{_GAP}registry)?{_GAP}login)"
    rf"(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-p(?:{_GAP}|=)?"
    rf"|(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump)(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-p"
    rf"|(?:sqlcmd|bcp)(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-P{_GAP}?"
    rf"|(?:ldapsearch|ldapmodify|ldapadd|ldapdelete|ldapwhoami)(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-w{_GAP}?"
    rf"|redis-cli(?:{_GAP}{_WORD}){{0,12}}?{_GAP}-a{_GAP}"
    rf"))(?![\s\"',\\]){_WORD}"
)
# What is printed into a program that reads its password from there.
_PIPED_PASSWORD = re.compile(
    r"(?P<keep>\b(?:echo|printf)[ \t]{1,8}(?:-\w{1,4}[ \t]{1,8})?)[^\n|;&]{1,256}?"
    r"(?=[ \t]{0,8}\|[ \t]{0,8}"
    r"(?:(?:sudo[ \t]{1,8})?kinit\b|sudo[ \t]{1,8}-S\b|[^\n|;&]{1,200}--(?:password-)?stdin\b))"
    r"|(?P<here>\bkinit\b[^\n|;&<]{0,128}<<<[ \t]{0,8})[^\n|;&]{1,256}"
)
_NETRC = re.compile(
    r"(?P<keep>\b(?:machine(?:\s|\\n){1,8}[^\s\\]{1,253}|default)(?:\s|\\n){1,8}login(?:\s|\\n){1,8}[^\s\\]{1,128}"
    r"(?:\s|\\n){1,8}password(?:\s|\\n){1,8})[^\s\\\"']++"
)
# ``host:port:database:user:password`` (PostgreSQL's password file).
_PGPASS = re.compile(
    r"(?P<keep>(?:^|(?<=\\n)|(?<=[\"']))[\w.*\-]{1,253}:(?:\d{4,5}|\*):[\w.*\-]{1,63}:[\w.*\-]{1,63}:)[^\n\s\"'\\]++"
    r"(?=\s*$|[\"'\\])",
    re.MULTILINE,
)
_SLACK_HOOK = re.compile(r"(?P<keep>hooks\.slack\.com/services/)[\w/\-]{8,}+", re.ASCII)
# Python before 3.11.5 matches a lookahead wrong inside of a possessive group (python/cpython#106052): none is in one.
# A CDATA section may hold "<"; one within another has none, which keeps the time linear.
_SPACE = r"(?:\s|\\{1,8}[nrt])"  # also as JSON writes it
_XML_VALUE = rf"{_SPACE}*+(?:<!\[CDATA\[(?P<cdata>(?:(?!\]\]>|<!\[CDATA\[).)+)\]\]>{_SPACE}*+|(?P<value>[^<]++))(?=</"
_XML_ELEMENT = re.compile(rf"<(?P<key>[\w.:\-]++)(?P<attributes>[^<>]*+)>{_XML_VALUE})", re.DOTALL)
_XML_PROPERTY = re.compile(
    rf"<(?P<tag>name|key)>(?P<key>[^<]++)(?P<attributes>)</(?P=tag)>{_SPACE}*+"
    # What else the property has.
    r"(?:<(?!/?(?:name|key|value|string|property|dict)>)[^<>]*+>[^<]*+)*"
    rf"<(?P<kind>value|string)>{_XML_VALUE}(?P=kind)>)",
    re.DOTALL,
)
_XML_NAME = re.compile(r"(?:name|key)\s{0,8}=\s{0,8}\\{0,8}[\"']([^\"'\\]{1,256})", re.IGNORECASE)
_PROSE = re.compile(r"tokens?|auth(?:entication|orization)?|schemes?|realm|headers?|format|challenge", re.IGNORECASE)
# With these a word alone before "@" may be a token; with others it is a place (an Azure container) or a mere login.
_TOKEN_AS_USER = re.compile(r"(?:git\+)?https?|git|mongodb|rediss?|amqps?", re.IGNORECASE)


def _mask_userinfo(match: re.Match[str]) -> str:
    userinfo, scheme = match["userinfo"], match["scheme"]
    if ":" not in userinfo and not (userinfo and _TOKEN_AS_USER.fullmatch(scheme)):
        return match[0]
    return f"{scheme}://{MASK}@"


def _mask_scheme_token(match: re.Match[str]) -> str:
    token = match["token"]
    if is_secret_key(token) and _SEPARATOR.match(match.string, match.end()):
        # What comes next is the secret.
        return match[0]
    if match["scheme"].lower() == "bearer":
        is_token = _PROSE.fullmatch(token.rstrip(".")) is None
    else:
        is_token = re.search(r"[0-9=]|[a-z][A-Z]", token) is not None
    return f"{match['scheme']}{match['gap']}{MASK}" if is_token else match[0]


def _mask_aws(match: re.Match[str]) -> str:
    return f"{MASK}{match['gap']}{MASK}" if match["rest"] else MASK


def _mask_piped(match: re.Match[str]) -> str:
    return f"{match['keep'] or match['here']}{MASK}"


def _mask_xml(match: re.Match[str]) -> str:
    keys = (match["key"].strip(), *_XML_NAME.findall(match["attributes"]))
    kind = "cdata" if match["value"] is None else "value"
    if not any(map(is_secret_key, keys)) or is_harmless_value(match[kind]):
        return match[0]
    start, stop = (end - match.start() for end in match.span(kind))
    return f"{match[0][:start]}{MASK}{match[0][stop:]}"


# The first is a part of every match.
_SHAPES: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (r"-----BEGIN ", _PEM, rf"\g<begin>{MASK}\g<end>"),
    (r"</", _XML_PROPERTY, _mask_xml),
    (r"</", _XML_ELEMENT, _mask_xml),
    (r"://\S*(?: \S*)?@", _USERINFO, _mask_userinfo),
    (r"(?i:jdbc:oracle:)\S*@", _ORACLE_LOGIN, rf"\g<keep>{MASK}@"),
    (r"(?i:bearer|basic)[ \t]", _SCHEME_TOKEN, _mask_scheme_token),
    (r"A(?:KIA|SIA|ROA|IDA)", _AWS_PAIR, _mask_aws),
    (rf"(?:^|[^A-Za-z0-9_\-]|\\[nrt]|%3D|%20)(?:{'|'.join(map(re.escape, _PREFIXES))})[\w\-.+/=]{{8}}", _TOKENS, MASK),
    (r"(?i:identified\s|password[ \t]+(?:for[ \t]|\\*[\"']))", _SQL_LOGIN, rf"\g<keep>\g<quote>{MASK}\g<quote>"),
    (r"(?i:identified\s)", _SQL_BARE_LOGIN, rf"\g<keep>{MASK}"),
    (r"--(?:proxy-)?user|curl", _FLAG_LOGIN, rf"\g<keep>{MASK}"),
    (r"hooks\.slack\.com", _SLACK_HOOK, rf"\g<keep>{MASK}"),
    (r"sshpass|beeline|cqlsh|login|mysql|mariadb|sqlcmd|bcp|ldap|redis-cli", _TOOL_PASSWORD, rf"\g<keep>{MASK}"),
    (r"kinit|sudo[ \t]|stdin", _PIPED_PASSWORD, _mask_piped),
    (r"login", _NETRC, rf"\g<keep>{MASK}"),
    (r":(?:\d{4,5}|\*):", _PGPASS, rf"\g<keep>{MASK}"),
)
_PREFILTERED = tuple((Prefilter(part), pattern, replacement) for part, pattern, replacement in _SHAPES)
may_have_shape = Prefilter("|".join(part for part, _, _ in _SHAPES))


def mask_name_shapes(name: str) -> str:
    """The name of a dataset without the logins of its URLs, and without tokens that nothing else looks like.

    ``abfss://container@account`` keeps its container.
    """
    if "@" in name:
        name = _ORACLE_LOGIN.sub(rf"\g<keep>{MASK}@", _USERINFO.sub(_mask_userinfo, name))
    return _UNMISTAKABLE.sub(MASK, _AWS_PAIR.sub(_mask_aws, name))


def mask_shapes(text: str) -> str:
    """The text with everything masked that looks like a secret."""
    if may_have_shape(text):
        for may_match, pattern, replacement in _PREFILTERED:
            if may_match(text):
                text = pattern.sub(replacement, text)
    return text


def shape_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the text looks like a secret; of an AWS pair with what is between the two."""
    for may_match, pattern, replacement in _PREFILTERED if may_have_shape(text) else ():
        for match in pattern.finditer(text) if may_match(text) else ():
            masked = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            if masked != match[0]:
                yield match.start() + masked.index(MASK), match.end() - (len(masked) - masked.rindex(MASK) - len(MASK))
