# SPDX-License-Identifier: Apache-2.0
"""Reads with s3torchconnector (AWS's own runtime), called by threads."""

import os

from read_list import Read, bucket_and_key, by_threads, requested_reads
from s3torchconnector import S3ClientConfig, S3ReaderConstructor
from s3torchconnector._s3client import S3Client

at_once, reads = requested_reads()
s3 = S3Client(
    region="us-east-1",
    endpoint=os.environ["AWS_ENDPOINT_URL"],
    s3client_config=S3ClientConfig(force_path_style=True, part_size=8 << 20),
)
ranges = S3ReaderConstructor.range_based(buffer_size=0)


def read(what: Read) -> int:
    bucket, key = bucket_and_key(what[0])
    if what[1] < 0:
        return len(s3.get_object(bucket, key).read())
    reader = s3.get_object(bucket, key, reader_constructor=ranges)
    reader.seek(what[1])
    return reader.readinto(bytearray(what[2] - what[1] + 1))


by_threads(read, at_once, reads)
