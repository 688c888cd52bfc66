"""Secrets that only their owner knows: Airflow's registered ones, and the user's patterns."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_lineage.secrets import redaction as own_secrets
from spark_lineage.secrets.redaction import (
    PatternError,
    compile_pattern,
    redact,
    redact_command,
    redact_dataset,
    redact_name,
    redact_value,
)

masker = pytest.importorskip("airflow.sdk._shared.secrets_masker")
pytest.importorskip("airflow.sdk.log")


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    masker.reset_secrets_masker()
    own_secrets.use_patterns(())


def in_a_process(code: str, tmp_path: Path, **env: str) -> str:
    roots = [str(Path(__file__).parents[2] / "provider")]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(roots), "AIRFLOW_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.strip()


def test_what_airflow_has_registered_is_masked_everywhere() -> None:
    assert redact("the word is Zx9!q2") == "the word is Zx9!q2"
    masker.mask_secret("Zx9!q2")
    assert redact("the word is Zx9!q2, twice: Zx9!q2Zx9!q2") == "the word is ***, twice: ***"
    assert redact_value({"a": ["Zx9!q2", 1]}) == {"a": ["***", 1]}
    assert redact_command(["app.py", "--mode", "Zx9!q2", "Zx9!q2=1"]) == ["app.py", "--mode", "***", "***=1"]


def test_the_forms_of_a_registered_secret_are_masked_too() -> None:
    masker.mask_secret('p@ss/"w o"rd\\')
    for text in ("p%40ss%2F%22w%20o%22rd%5C", "p%40ss%2F%22w+o%22rd%5C", r"p@ss/\"w o\"rd\\"):
        assert redact(f"x {text} y") == "x *** y"


def test_remember_values_registers_what_is_no_name_with_airflow() -> None:
    own_secrets.remember_values({"spark.a.password": "Zx9!q2Zx9!q2", "spark.b.password": "sunshine"})
    assert masker.redact("tried Zx9!q2Zx9!q2 in sunshine") == "tried *** in sunshine"


def test_the_directory_of_a_shell_is_no_secret() -> None:
    own_secrets.remember_values({"PWD": "/opt/airflow", "OLDPWD": "/home/airflow", "DB_PWD": "/opt/q9!zz"})
    assert redact("open /opt/airflow and /home/airflow by /opt/q9!zz") == "open /opt/airflow and /home/airflow by ***"


def test_a_short_secret_is_not_masked_as_airflow_leaves_it_out() -> None:
    masker.mask_secret("abcd")
    assert redact("abcd") == "abcd"


@pytest.mark.parametrize(
    "token",
    [
        "SG.aaaaZx9q2Zx9q2aaaaaaaaaa.bbbbbbbbbbbbbbbbbb",
        "dckr_pat_aaaaaaaaZx9q2Zx9q2aaaaaaaaaaaa",
        "Bearer aZx9q2Zx9q2b",
    ],
)
@pytest.mark.parametrize("registered", ["Zx9q2Zx9q2", "aaaaaaaa"])
def test_of_a_token_that_holds_a_registered_secret_nothing_is_left(token: str, registered: str) -> None:
    scheme = token.rpartition(" ")[0]
    masker.mask_secret(registered)
    assert redact(f"sent with {token}, twice {token}") == "sent with X, twice X".replace("X", f"{scheme} ***".strip())


def test_of_secrets_within_secrets_nothing_is_left() -> None:
    masker.mask_secret("Zx9!q2")
    masker.mask_secret("Zx9!q2-and-more")
    masker.mask_secret("more-behind-it")
    assert redact("<Zx9!q2-and-more-behind-it>") == "<***>"


@pytest.mark.parametrize("word", ["password", "spark.db.password", "token", "https", "admin"])
def test_a_registered_common_word_does_not_hide_what_is_a_secret_by_its_key(word: str) -> None:
    masker.mask_secret(word)
    masked = redact("spark.db.password=hunter2 token: hunter2 https://admin:hunter2@host")
    assert "hunter2" not in masked
    assert word not in masked
    assert redact(masked) == masked


def test_a_secret_that_a_mask_would_have_torn_apart_goes_as_a_whole() -> None:
    masker.mask_secret("abc;hunter2&x")
    assert redact("token=abc;hunter2&x") == "token=***"


@pytest.mark.parametrize("secret", ["landing", "orders_2024", "spark123", "20240131", "sales-eu.orders", "customers", "s3://lake",
                                    "hdfs://nn:8020/user/hive"])  # fmt: skip
def test_a_registered_common_word_is_no_secret_in_an_identity(secret: str) -> None:
    masker.mask_secret(secret)
    name = f"s3://bucket/{secret}/part"
    assert redact_dataset(name) == name
    assert redact_dataset(secret) == secret
    assert redact_name(f"dag.{secret}") == f"dag.{secret}"
    assert redact_dataset(f"jdbc:x://h/{secret}?password={secret}") == f"jdbc:x://h/{secret}?password=***"
    assert secret not in redact(f"connected with {secret}")


@pytest.mark.parametrize("secret", ["Zx9q2LmP", "wJalrXUt/K7MDENG/bPx", "hunter2!x", "3f2a9c7e-1b1d-4c55"])
def test_a_registered_secret_that_is_no_word_goes_from_an_identity_too(secret: str) -> None:
    masker.mask_secret(secret)
    assert redact_dataset(f"s3://bucket/{secret}/part") == "s3://bucket/***/part"
    assert redact_name(f"dag.{secret}") == "dag.***"
    assert redact_dataset(f"c_{secret}") == "c_***"


def test_caches_are_told_that_another_secret_was_registered() -> None:
    before = own_secrets.generation()
    assert own_secrets.generation() == before
    masker.mask_secret("Zx9!q2")
    middle = own_secrets.generation()
    assert middle != before
    own_secrets.use_patterns(["ACME"])
    assert own_secrets.generation() != middle
    masker.reset_secrets_masker()
    assert own_secrets.generation() not in (before, middle)


def test_patterns_mask_what_they_match_or_their_groups() -> None:
    own_secrets.use_patterns([r"ACME-[0-9]{8}", r"customer no\. (\d+)", r"x(1)?y"])
    assert redact("ACME-12345678, ACME-1") == "***, ACME-1"
    assert redact("customer no. 4711 is late") == "customer no. *** is late"
    assert redact("x1y xy") == "x***y ***"
    assert redact_dataset("s3://b/ACME-12345678") == "s3://b/***"
    assert redact_dataset("ACME-12345678") == "***"
    assert redact("a \ud800 ACME-12345678 é") == "a \ud800 *** é"
    own_secrets.use_patterns(["B"])
    assert redact("ACME-12345678") == "ACME-12345678"


@pytest.mark.parametrize("pattern", [".", "..", r"\*", r"\w+", "[^ ]{3}", "(a)(b)?", "(?i)PASSWORD", r"=\S+", "e"])
def test_masking_by_patterns_is_idempotent(pattern: str) -> None:
    own_secrets.use_patterns([pattern])
    for text in ("abc def", "password=hunter2 ab *** a", "https://me:pw@host"):
        masked = redact(text)
        assert redact(masked) == masked
        assert "hunter2" not in masked


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(hunter2", "RE2 cannot read it (missing ))"),
        ("(?<=hunter2)a", "no look-around"),
        (r"(hunter2)\1", "no back-references"),
        ("(hunter2)*", "empty text"),
        ("\ud800", "Unicode"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_told_without_being_shown(pattern: str, words: str) -> None:
    with pytest.raises(PatternError) as error:
        compile_pattern(pattern)
    assert words in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_bad_pattern_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.WARNING):
        own_secrets.use_patterns(["(hunter2", "ACME"])
    assert redact("ACME (hunter2") == "*** (hunter2"
    assert "Pattern 1 of redaction_patterns masks nothing: RE2 cannot read it" in caplog.text
    assert "hunter2" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+b", "(.*a){12}z", "a*a*a*a*a*b"])
def test_a_pattern_that_would_take_for_ever_does_not(pattern: str) -> None:
    own_secrets.use_patterns([pattern])
    started = time.perf_counter()
    redact("a" * 200_000 + "!")
    assert time.perf_counter() - started < 5


def test_a_text_of_many_megabytes_is_cut() -> None:
    text = "spark.x.password=hunter2 and so on, " * 600_000
    started = time.perf_counter()
    masked = redact(text)
    assert time.perf_counter() - started < 5
    assert len(masked) < 1_000_000
    assert "hunter2" not in masked
    assert masked.endswith("more characters)")
    assert redact(masked) == masked


@pytest.mark.parametrize("gap", [" ", '"', "a"])
def test_a_cut_leaves_no_half_of_a_secret(gap: str) -> None:
    jwt = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIi" * 100
    masked = redact(gap * 249_700 + f" {jwt} " + gap * 800_000)
    assert "eyJ" not in masked


SECTION = "[spark_lineage]\nredaction_patterns = ACME-[0-9]+\n    (hunter\n    customer no\\. (\\d+)\n"
SHOW = "print(redact('ACME-1 customer no. 12'))"


def test_without_airflow_the_section_is_read_from_its_file_and_airflow_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text(SECTION)
    code = f"import sys; from spark_lineage.secrets.redaction import redact; {SHOW}; print('airflow' in sys.modules)"
    assert in_a_process(code, tmp_path) == "*** customer no. ***\nFalse"


def test_the_variable_comes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text(SECTION)
    code = f"from spark_lineage.secrets.redaction import redact; {SHOW}"
    assert in_a_process(code, tmp_path, AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS="ACME") == "***-1 customer no. 12"


def test_a_file_that_cannot_be_read_masks_nothing_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_bytes(b"no section \xff\n")
    code = f"from spark_lineage.secrets.redaction import redact; {SHOW}"
    assert in_a_process(code, tmp_path) == "ACME-1 customer no. 12"


def test_airflows_configuration_is_asked_once_it_is_there(tmp_path: Path) -> None:
    code = (
        f"from spark_lineage.secrets.redaction import redact; {SHOW}\n"
        f"import os; os.environ['AIRFLOW__SPARK_LINEAGE__REDACTION_PATTERNS'] = 'ACME'\n"
        f"{SHOW}\n"
        f"import airflow.configuration\n"
        f"{SHOW}\n"
    )
    assert in_a_process(code, tmp_path).splitlines() == [
        "ACME-1 customer no. 12",
        "ACME-1 customer no. 12",
        "***-1 customer no. 12",
    ]
