"""Secrets in every form that ``docs/handbook/redaction.md`` names, in random surroundings: nothing of them is left."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape

import pytest
from fuzzing import fuzzed
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spark_lineage.secrets import redaction
from spark_lineage.secrets.redaction import (
    redact,
    redact_command,
    redact_dataset,
    redact_error,
    redact_event,
    redact_name,
    redact_value,
)

masker = pytest.importorskip("airflow.sdk._shared.secrets_masker")

LETTERS = string.ascii_letters + string.digits
RUN_ID = "0190a5b2-7c1e-7d5f-9d4b-3f1a2b3c4d60"
FACET = {"_producer": "https://github.com/me/x", "_schemaURL": "https://openlineage.io/spec/facets/1-0-0/X.json"}

# What no form of a value ends at, and what only quotes keep together.
WORDS = st.text(LETTERS + "!$%^*+.~_-", min_size=6, max_size=20).map(lambda text: f"Zq7{text}9x")
PHRASES = st.text(LETTERS + " ,;:&<>{}[]()=@/!", min_size=6, max_size=20).map(lambda text: f"Zq7{text}9x")
TOKENS = st.text(LETTERS, min_size=40, max_size=60).map(lambda text: f"Zq7{text}")
KEYS = st.builds(
    "{}{}".format,
    st.sampled_from(["", "spark.my.", "DB_", "x-", "aws_", "fs.s3a."]),
    st.sampled_from([
        "password", "PASSWORD", "passwd", "pwd", "pw", "pass", "passphrase", "pass_phrase", "secret", "secret.key",
        "token",
        "accessToken", "apiKey", "api-key", "access_key", "private_key", "account.key", "fernet_key", "master_key",
        "Subscription-Key", "credentials", "CREDS", "authorization", "signature", "sig", "cookie",
    ]),
)  # fmt: skip


def _pem(body: str) -> str:
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


# Text and the secret in it. What stands around is parted from it by a space or a line end.
def forms_of_words(key: str, word: str) -> list[str]:
    return [
        f"{key}={word}", f"{key}: {word}", f"{key} = {word}", f"{key} -> {word}", f"{key} := {word}",
        f"--{key} {word}",
        f"--conf {key}={word}", f"-D{key}={word}", f"https://me:{word}@host/p",
        f"jdbc:postgresql://h/d?user=me&password={word}", f"jdbc:sqlserver://h;user=me;password={word}",
        f"https://h/x?sig={word}", f"https://h/x?X-Amz-Signature={word}&se=1", f"Authorization: Token {word}",
        f"- name: {key}\n  value: {word}", f"EnvVar(name={key}, value={word})",
        f"spark.{key}{' ' * 20}{word}\n", f"{key}{' ' * 12}= {word}", f"-{key} {word}", f"curl -su me:{word}",
        f"--user me:{word}", f"--proxy-user=me:{word}", f"https://me:{word}#{word}@host/p", f"https://me:{word}?{word}@h",
        f"https://me:{word} {word}@h/p", f"CREATE USER me IDENTIFIED BY {word};", f"\x1b[1m{key}\x1b[0m=\x1b[31m{word}",
        f'Authorization: Digest username="me", uri="/", response="{word}"', f"['x', '--{key}', '{word}']",
    ]  # fmt: skip


def forms_of_phrases(key: str, phrase: str) -> list[str]:
    return [
        json.dumps({key: phrase}), repr({key: phrase}), f"{key}={phrase!r}", f'{key} = "{phrase}"',
        f'df.option("{key}", "{phrase}")', f'os.environ["{key}"] = "{phrase}"',
        f"CREATE USER me IDENTIFIED BY '{phrase}'", f"<{key}>{escape(phrase)}</{key}>",
        f"<{key} kind='x'><![CDATA[{phrase}]]></{key}>", f"<name>{key}</name>\n<value>{escape(phrase)}</value>",
        f'<entry key="{key}">{escape(phrase)}</entry>', f'<p name="{key}" value="{escape(phrase)}"/>',
        f'<p {key}="{escape(phrase)}"/>', json.dumps({"name": key, "value": phrase}), repr({"value": phrase,
        "key": key}), json.dumps({"name": key, "meta": {"type": "a > b"}, "value": phrase}),
        f"<name>{key}</name><final>true</final><value>{escape(phrase)}</value>", f'setPassword("{phrase}")',
        f"ALTER USER me WITH PASSWORD '{phrase}'", f"SET PASSWORD FOR me = '{phrase}'", f"curl -u 'me:{phrase}'",
    ]  # fmt: skip


def forms_of_tokens(token: str) -> list[str]:
    hexadecimal = token.encode().hex()[:40]
    return [
        f"Bearer {token}", f"Basic {base64.b64encode(token.encode()).decode()}", f"eyJhbGciOi.eyJ{token}.{token}",
        f"AKIAABCDEFGHIJKLMNOP:{token[:40]}", _pem(token), f"dapi{hexadecimal[:32]}", f"dop_v1_{hexadecimal}",
        f"AIza{token[:35]}", f"sk-ant-{token}", f"sk-{token}", f"jdbc:oracle:thin:me/{token}@h:1521:x",
        f"https://hooks.slack.com/services/T0/B0/{token}", f"https://{token}@github.com/o/r",
        *(f"{prefix}{token}" for prefix in (
            "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xapp-", "sk_live_", "rk_live_", "hvs.", "ya29.",
            "GOCSPX-",
            "hf_", "npm_", "pypi-",
        )),
    ]  # fmt: skip


PLANTED = st.one_of(
    st.tuples(KEYS, WORDS).flatmap(lambda two: st.sampled_from(forms_of_words(*two)).map(lambda text: (text, two[1]))),
    st.tuples(KEYS, PHRASES).flatmap(
        lambda two: st.sampled_from(forms_of_phrases(*two)).map(lambda text: (text, two[1]))
    ),
    TOKENS.flatmap(lambda one: st.sampled_from(forms_of_tokens(one)).map(lambda text: (text, one))),
)
NOISE = st.lists(
    st.sampled_from([
        "password", "token", "=", ":", '"', "'", "\\", "://", "@", "?", "&", ";", ",", "{", "}", "(", ")", "[", "]",
        "<", ">",
        "</", "-", "--", "->", "***", "Bearer", "name", "value", "key:", "<name>", "</value>", "null", "%3D", "a",
        "B1", "\n",
        " ", "<![CDATA[", "\t", "at org.x.Y(Z.java:1)", "\x1b[0m", "curl -u ", "--user", "#",
    ]) | st.text(max_size=4), max_size=8).map("".join)  # fmt: skip
GAPS = st.sampled_from([" ", "\n", "\t"])
QUIET = st.text(LETTERS + " .,:/-_\n", max_size=30)


def _left(planted: tuple[str, str], masked: str) -> bool:
    text, secret = planted
    # Of a form that encodes the secret, what stands in the text.
    encoded = (
        secret,
        escape(secret),
        base64.b64encode(secret.encode()).decode(),
        secret.encode().hex()[:32],
        secret[:35],
    )
    hidden = next(each for each in encoded if each in text)
    return any(hidden[at : at + 8] in masked for at in range(len(hidden) - 7))


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    masker.reset_secrets_masker()
    redaction.use_patterns(())


@fuzzed(300)
@given(PLANTED, QUIET, QUIET, GAPS, GAPS)
def test_a_planted_secret_leaves_text_events_and_errors(
    planted: tuple[str, str], before: str, after: str, gap: str, other_gap: str
) -> None:
    assume(not _left(planted, before + after))
    text = f"{before}{gap}{planted[0]}{other_gap}{after}"
    masked = redact(text)
    assert not _left(planted, masked), masked
    assert redact(masked) == masked
    event = {"run": {"runId": RUN_ID, "facets": {"x": {**FACET, "message": text, "list": [{"a": text}]}}}}
    facet = redact_event(event)["run"]["facets"]["x"]
    assert not _left(planted, repr([facet["message"], facet["list"]]))
    error = RuntimeError(text, [text])
    error.add_note(text)
    redact_error(error)
    assert not _left(planted, f"{error} {error.__notes__}")
    assert not _left(planted, repr(redact_value({"message": (text, {"more": text})})))
    assert not _left(planted, " ".join(redact_command(["spark-submit", text])))


@fuzzed(200)
@given(PLANTED, NOISE, NOISE)
def test_noise_around_it_hides_no_secret(planted: tuple[str, str], before: str, after: str) -> None:
    assume(not _left(planted, before + after))
    masked = redact(f"{before}\n{planted[0]}\n{after}")
    assert not _left(planted, masked), masked
    assert redact(masked) == masked


@fuzzed(150)
@given(PLANTED, QUIET, st.integers(1, 2))
def test_json_within_json_hides_no_secret(planted: tuple[str, str], before: str, depth: int) -> None:
    assume(not _left(planted, before))
    text = f"{before} {planted[0]}"
    for _ in range(depth):
        text = json.dumps({"message": text}, ensure_ascii=False)
    masked = redact(text)
    assert not _left(planted, masked), masked


@fuzzed(150)
@given(PHRASES, NOISE, NOISE, st.sampled_from([redact, redact_name, redact_dataset]))
def test_what_is_registered_leaves_every_text(secret: str, before: str, after: str, mask: Any) -> None:
    masker.reset_secrets_masker()
    masker.mask_secret(secret)
    text = f"{before}{secret}{after}"
    masked = mask(text)
    assert secret not in masked
    assert mask(masked) == masked


NAMES = st.lists(
    st.sampled_from([
        "Basic", "Bearer", "Salary2023", "shares", "password", "token=7", "api_key", "secret", "/data/",
        "s3://lake", "hive",
        ".", "_", "-", " ", "orders", "=", "ghp-short", "eyJ", "sk-", "hvs.orders", "AKIA", "name", "value", ":",
        "{", "}",
    ]) | st.text(LETTERS + "äß ", max_size=5), min_size=1, max_size=8).map("".join)  # fmt: skip


@fuzzed(200)
@given(st.lists(NAMES, min_size=1, max_size=3, unique=True))
@example(["password", "name", "value"])
def test_names_without_a_secret_are_what_they_were(names: list[str]) -> None:
    masker.reset_secrets_masker()
    masker.mask_secret("s3://lake")
    masker.mask_secret("orders")
    assume(not any("://" in name and "@" in name for name in names))
    fields = [{"name": name, "type": f"struct<{name}:int>"} for name in names]
    edges = {name: {"inputFields": [{"namespace": names[0], "name": name, "field": name}]} for name in names}
    facets = {"schema": {"fields": fields}, "columnLineage": {"fields": edges}}
    event = {"outputs": [{"namespace": name, "name": name, "facets": facets} for name in names]}
    assert [redact_dataset(name) for name in names] == names
    assert redact_event(event) == event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NOISE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NOISE | KEYS | st.sampled_from(
        ["name", "value", "namespace", "fields", "facets", "job", "runId", "old", "partitionedBy", "dataSource"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@fuzzed(150)
@given(st.dictionaries(st.sampled_from(["facets", "job", "token", "inputs"]), JSON))
def test_any_event_is_masked_once_and_for_all(event: dict[str, Any]) -> None:
    once = redact_event(event)
    assert redact_event(once) == once
    value = redact_value(event)
    assert redact_value(value) == value
