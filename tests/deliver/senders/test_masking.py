from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import redact

from spark_lineage.deliver.connections import mask_config


@pytest.mark.parametrize(
    ("config", "secret"),
    [
        ({"custom_headers": {"Authorization": "Basic bWU6aHVudGVyMg"}}, "bWU6aHVudGVyMg"),
        ({"custom_headers": {"X-Anything": "hunter-one"}}, "hunter-one"),
        ({"auth": {"type": "jwt", "apiKey": "hunter-two"}}, "hunter-two"),
        ({"config": {"sasl.password": "hunter-three"}}, "hunter-three"),
        ({"transports": [{"config": {"sasl.password": "hunter-four"}}]}, "hunter-four"),
    ],
)
def test_secrets_are_masked_in_the_logs_of_airflow(config, secret):
    mask_config(config)
    assert secret not in redact(f"it is {secret}!")


def test_what_is_no_secret_stays():
    mask_config({"type": "http", "url": "http://marquez:5000", "auth": {"type": "api_key", "apiKey": "abc"}})
    assert redact("http://marquez:5000 api_key abc") == "http://marquez:5000 api_key abc"
