"""What doctor reads of a directory in S3."""

from __future__ import annotations

from typing import Any

import pytest

from spark_lineage.doctor.event_log import _read_latest
from spark_lineage.submission.stored_event_log import open_file_system

pytestmark = pytest.mark.clouds


def test_object_that_stands_for_a_directory_is_no_event_log(aws: Any) -> None:
    fs, root = open_file_system(f"s3a://shop_aws@{aws.bucket}/eventlogs", ())
    assert _read_latest(fs, root) == ""
    aws.client("s3").put_object(Bucket=aws.bucket, Key="eventlogs/app-1", Body=b"{}\n")
    assert _read_latest(fs, root) == "app-1"
