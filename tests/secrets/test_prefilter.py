"""What is looked for first in a text is a part of every secret, so that no secret is passed over."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spark_lineage.secrets import secret_keys
from spark_lineage.secrets.redaction import _may_have_secret, redact, redact_name
from spark_lineage.secrets.secret_keys import _KEY, Prefilter, _key_starts, is_secret_key, mask_shapes

SECRETS = [
    "https://me:hunter2@host/x",
    "jdbc:oracle:thin:scott/tiger@db:1521",
    "Authorization: bearer abcdef123456",
    "BASIC dXNlcjpwYXNz1",
    "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOi.eyJzdWIi.sig",
    "ghp_" + "a" * 36,
    "github_pat_" + "a" * 22,
    "glpat-" + "a" * 20,
    "xoxb-1234567890-a",
    "dapi" + "0a" * 16,
    "sk-" + "a" * 24,
    "AIza" + "a" * 35,
    "hf_" + "a" * 32,
    "npm_" + "a" * 32,
    "pypi-" + "a" * 32,
    "dop_v1_" + "0" * 40,
    "CREATE USER me Identified By 'hunter2'",
    "CREATE USER me IDENTIFIED BY hunter2",
    "set password for me = 'hunter2'",
    "curl -u me:hunter2",
    "sshpass -p hunter2",
    "mysql -phunter2",
    "echo hunter2 | kinit me",
    "machine h login me password hunter2",
    "\ndb:5432:shop:me:hunter2\n",
    "--proxy-user me:hunter2",
    "https://me:p w@host",
    "https://hooks.slack.com/services/T000/B000/XXXX",
    "<name>db.password</name><value>hunter2</value>",
    "<password>hunter2</password>",
    "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_every_shape_is_still_seen(secret: str) -> None:
    assert "***" in mask_shapes(f"before {secret} after")


@pytest.mark.parametrize(
    "text",
    [
        "key=1 part_key: 3 monkey=2",
        "the monkey key: 3, primary_key=id",
        "root\n |-- password\n |-- token",
        "SELECT token, password FROM users WHERE token IS NULL",
        "task-result-getter-3 INFO TaskSetManager: Finished task 4.0",
        "mail me@example.org, see s3://lake/a",
    ],
)
def test_the_words_of_a_key_alone_are_not_looked_at_closely(text: str) -> None:
    assert not _may_have_secret(text)


FRAGMENTS = st.lists(
    st.sampled_from([
        "password", "token", "apiKey", "PASS", "pw", "n", "key", "name", "value", "auth", ".keytab", "spark.", "--",
        "-D", ".", "_", "$", "=", ":", ":=", "->", "=>", "%3D", ",", " ", "\t", "\n", '"', "'", "`", "]", "\\", "\\n",
        "{", "}", "hunter2", "x", "option(", "é", "\udcff", "\u00a0", "İ", "\u212a", "https://", "@", "Bearer ", "/",
        "jdbc:oracle:thin:", "IDENTIFIED BY ", "eyJhbGciOi", "ghp_" + "a1" * 12, "%20", "<token>", "</token>",
        "(", ")", "-", "curl -u ", "--user ", "sshpass", " -p ", "kinit",
        "echo ", "|", "login ", "machine h ", ":5432:", "#", "?", "\x1b[1m", "signature",
    ]) | st.text(max_size=2), max_size=14
).map("".join)  # fmt: skip


@settings(max_examples=1_000, deadline=None)
@given(FRAGMENTS)
@example("a%3Dtoken=x")
@example("\\ntoken=x \\npw=y")
def test_what_is_masked_is_the_same_without_it(text: str) -> None:
    with patch.object(Prefilter, "__call__", return_value=True):
        expected = redact(text), redact_name(text)
    assert (redact(text), redact_name(text)) == expected


@settings(max_examples=1_000, deadline=None)
@given(FRAGMENTS)
def test_every_key_of_a_secret_is_begun_at(text: str) -> None:
    named = (
        (match.start(), match.group("flag", "property", "argument", "tuple", "call", "key"))
        for match in _KEY.finditer(text)
    )
    found = {start for start, keys in named if is_secret_key(next(filter(None, keys)))}
    assert found <= set(_key_starts(text))


def test_without_re2_every_text_is_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_keys, "re2", None)
    assert Prefilter("(?i)token|pass")("plain")
