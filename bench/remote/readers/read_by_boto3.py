# SPDX-License-Identifier: Apache-2.0
"""Reads with boto3: one client, and threads with one connection each."""

import os

import boto3
from botocore.config import Config
from read_list import Read, bucket_and_key, by_threads, requested_reads

at_once, reads = requested_reads()
style = Config(
    s3={"addressing_style": "path"}, max_pool_connections=at_once, request_checksum_calculation="when_required"
)
s3 = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], region_name="us-east-1", config=style)


def read(what: Read) -> int:
    bucket, key = bucket_and_key(what[0])
    part = {"Range": f"bytes={what[1]}-{what[2]}"} if what[1] >= 0 else {}
    return len(s3.get_object(Bucket=bucket, Key=key, **part)["Body"].read())


by_threads(read, at_once, reads)
