"""Secrets that a job is given: whoever prints one of them later prints it without its key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_lineage.secrets import redaction
from spark_lineage.secrets.redaction import redact, redact_dataset, redact_error, remember_query, remember_values

GIVEN = {
    "spark.my.password": "sunshine",
    "spark.db.url": "jdbc:postgresql://me:moonlight@db/shop",
    "spark.other.url": "jdbc:sqlserver://db;user=me;password=starlight;encrypt=true",
    "spark.kafka.jaas": 'org.apache.kafka.PlainLoginModule required username="me" password="candlelight";',
    "spark.short.password": "moon",
    "spark.app.name": "daylight",
}


@pytest.fixture(autouse=True)
def given() -> Iterator[None]:
    remember_values(GIVEN)
    yield
    redaction._owner.remembered = frozenset()


@pytest.mark.parametrize("secret", ["sunshine", "moonlight", "starlight", "candlelight"])
@pytest.mark.parametrize("text", ["refused for {}", "'{}' is wrong", "tried ({}), then none", "It was {}.", "{}"])
def test_redact_value_that_was_given_masks_it_where_it_stands_alone(secret: str, text: str) -> None:
    assert redact(text.format(secret)) == text.format("***")


@pytest.mark.parametrize(
    "text", ["s3://sunshine/orders", "sunshine-zone", "mysunshine", "sunshine.orders", "the moon", "daylight", "shop"]
)
def test_redact_text_with_a_given_value_in_a_longer_name_stays(text: str) -> None:
    assert redact(text) == text


def test_redact_dataset_that_is_called_as_a_given_value_stays() -> None:
    assert redact_dataset("sunshine") == "sunshine"


def test_redact_error_masks_what_was_given() -> None:
    error = ValueError("no access with moonlight")
    redact_error(error)
    assert str(error) == "no access with ***"


@pytest.mark.parametrize("key", ["token", "t.token", "(token", "NOT t.`token`"])
def test_remember_query_that_compares_with_a_word_knows_no_secret(key: str) -> None:
    query = "SELECT * FROM t WHERE {} = 'customers' AND t.password <> '' OR\n api_key = 'landing_2024'"
    remember_query(query.format(key))
    assert redact("reads customers and 'landing_2024'") == "reads customers and 'landing_2024'"


def test_remember_query_that_compares_with_a_secret_knows_it() -> None:
    remember_query("SELECT * FROM t WHERE token='Zx9!q2Zx9'; CREATE TABLE u OPTIONS (token = 'moonshine')")
    assert redact("refused Zx9!q2Zx9, moonshine") == "refused ***, ***"
