from __future__ import annotations

import pytest

from spark_lineage.deliver.hooks import OpenLineageHook
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.sender import Refused
from spark_lineage.settings import SettingError

SECRET = "hunter2hunter2"  # noqa: S105
EVENT = Outgoing.of(b'{"job": {"namespace": "n", "name": "j"}}')


def test_the_least_that_works(backend, connection):
    connection("marquez", conn_type="openlineage", host=backend.url)
    hook = OpenLineageHook("marquez")
    backend.status = 201
    sender = hook.get_conn()
    sender.send(EVENT)
    backend.status = 422
    assert hook.test_connection() == (
        True,
        f"{backend.url}/api/v1/lineage is reached, and refuses an empty event as it should (422)",
    )
    assert hook.namespace is None
    with pytest.raises(Refused):
        sender.send(EVENT)
    sender.close()


def test_namespace(connection):
    connection("openlineage_default", conn_type="openlineage", host="h", extra={"namespace": "prod"})
    assert OpenLineageHook().namespace == "prod"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"conn_type": "openlineage"}, "'host' of the connection 'it' is empty"),
        ({"conn_type": "http", "host": "h"}, "the connection 'it' is of type 'http'; give one of type 'openlineage'"),
        ({"conn_type": "openlineage", "host": f"http://me:{SECRET}@h"}, "'host' of the connection 'it' holds a login"),
    ],
)
def test_a_connection_that_does_not_fit(connection, fields, message):
    connection("it", **fields)
    with pytest.raises(SettingError, match=message):
        OpenLineageHook("it").transport_config()
    is_good, text = OpenLineageHook("it").test_connection()
    assert not is_good
    assert message in text
    assert SECRET not in text


def test_a_wrong_key_is_told_without_it(backend, connection):
    backend.status, backend.body = 401, f"Bearer {SECRET} is no \x1b[2J key".encode()
    connection("it", conn_type="openlineage", host=backend.url, password=SECRET)
    is_good, text = OpenLineageHook("it").test_connection()
    assert not is_good
    assert "the credentials are missing or wrong" in text
    assert SECRET not in text
    assert r"\x1b[2J" in text
    assert backend.asked[0][2]["Authorization"] == f"Bearer {SECRET}"
