# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzzers of remote storage and its cache, with the same bytes in every run.

The last 8 bytes of an entry are the XXH3 of all others; cache_entry_fuzz corrects them after a mutation.
"""

from __future__ import annotations

import struct
from pathlib import Path

HEADS = {
    "range": b"HTTP/1.1 206 Partial Content\r\nContent-Length: 500\r\nContent-Range: bytes 0-499/1234\r\n"
    b'ETag: "a1b2"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-amz-request-id: R17\r\n\r\n',
    "whole": b'HTTP/2 200\r\ncontent-length: 1234\r\netag: W/"weak"\r\nx-amz-bucket-region: eu-west-1\r\n\r\n',
    "past_the_end": b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */1234\r\n\r\n",
    "later": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Slow Down\r\nRetry-After: 120\r\n\r\n",
    "later_by_date": b"HTTP/1.1 429 Too Many\nRetry-After: Fri, 01 Jan 2027 00:00:00 GMT\nX-Request-Id: 7\n\n",
    "moved": b"HTTP/1.1 307 Moved\r\nLocation: https://elsewhere/x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "parts": b"HTTP/1.1 206 P\r\nContent-Type: multipart/byteranges; boundary=b\r\nContent-Range: bytes 5-4/*\r\n\r\n",
}
LISTING = (
    b'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Name>b</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
    b"<NextContinuationToken>a&amp;b&#61;&#x3D;</NextContinuationToken>"
    b"<Contents><Key>t%26/a+b%2Bc%C3%A9.jpg</Key><Size>17</Size><ETag>&quot;e&quot;</ETag></Contents>"
    b"<Contents><Key>t%26/z</Key><Size>0</Size><Owner/></Contents>"
    b"<CommonPrefixes><Prefix>t%26/cat/</Prefix></CommonPrefixes></ListBucketResult>"
)
ANSWERS = {
    "listing": LISTING,
    "empty": b"<ListBucketResult/>",
    "uploads": b"<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
    b"<NextUploadIdMarker>i</NextUploadIdMarker><Upload><Key>a&lt;b</Key><UploadId>u</UploadId></Upload>"
    b"</ListMultipartUploadsResult>",
    "begun": b"<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>VXBs</UploadId>"
    b"</InitiateMultipartUploadResult>",
    "completed": b'<CompleteMultipartUploadResult><ETag>"e-3"</ETag></CompleteMultipartUploadResult>',
    "error": b"<Error><Code>ExpiredToken</Code><Message>no</Message><RequestId>4</RequestId></Error>",
    "keys": b"\x01\x03a/b\x05<&>\"'\x02\xc3\xa9",
}
URLS = {
    "plain": b"https://host.example:443/a%20b/c.tar",
    "user": b"HTTP://name:secret-password@Host:80/x?versionId=7",
    "signed": b"https://bucket.s3.amazonaws.com/k?X-Amz-Signature=0123456789abcdef&X-Amz-Expires=60&partNumber=1",
    "cdn": b"https://cdn/x?Policy=p&Key-Pair-Id=k&Signature=s&q=1#fragment",
    "s3": b"s3://bucket/key",
    "odd": b"http://[::1]:80/?&&a==&token=t&",
}


def transfer(kind: int, offset: int, size: int, *answers: bytes, parts: bytes = b"") -> bytes:
    return struct.pack(">BHH", kind, offset, size) + parts + b"".join(answers)


def answer(status: int, head: int, etag: int, how: int, *pieces: int, end: int = 0) -> bytes:
    return bytes([status, head, etag, how, *pieces, end])


TRANSFERS = {
    "range": transfer(4, 100, 399, answer(0, 0, 0, 0, 40, 90)),
    "resumed": transfer(4, 100, 399, answer(0, 0, 0, 1, 128, 90, end=1), answer(0, 0, 0, 0, 255)),
    "whole_for_range": transfer(0, 300, 99, answer(1, 6, 0, 0, 255, 255)),
    "parts": transfer(1, 10, 299, answer(0, 0, 0, 0, 20, 20, 60), parts=bytes([3, 40, 5, 60, 39, 80])),
    "whole": transfer(2, 0, 0, answer(1, 6, 0, 0, 255, 255)),
    "chunked": transfer(2, 0, 0, answer(1, 7, 6, 0, 255, 255)),
    "changed": transfer(0, 0, 500, answer(0, 2, 0, 0, 9, 100), answer(0, 0, 4, 0, 255)),
    "past_the_end": transfer(4, 1020, 9, answer(2, 5, 0, 0)),
    "busy": transfer(4, 0, 9, answer(5, 7, 0, 0, 0, 9, 9), answer(0, 0, 0, 0, 9)),
}
PLANS = {
    "near": bytes([0, 0, 39, 16, 0, 0, 0, 0, 255, 255]) + bytes([21, 0, 0, 1, 0]) + bytes([21, 2, 0, 1, 0]) * 3,
    "long": bytes([1, 0, 0, 64, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 64, 128]) + bytes([4, 0, 9, 0, 0, 0, 64, 0]) * 2,
    "at_the_end": bytes([1, 0, 1, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 1, 0, 64]) + bytes([24, *[255] * 7, 255, 255]) * 2,
}


def entry(name: bytes, version: int = 1) -> bytes:
    numbers = struct.pack("<8Q", 0x7972746E65636C66, version, 12345, 10**18, 99, 7, 10**18, len(name))
    return numbers + name + bytes(-len(name) % 8) + bytes(8)


ENTRIES = {
    "entry": entry(b"s3://bucket/train/000.tar"),
    "of_another_version": entry(b"x", 2),
    "without_a_name": entry(b""),
    "ledger": struct.pack("<4Q", 0x65686361636C6664, 1, 8192, 0),
    "table": struct.pack("<5Q", 7, 1, 2, 5, 3) + bytes(16) + b"hello\0\0\0" + bytes(16) + bytes(8),
}


def main() -> None:
    made = {
        "response_head": HEADS,
        "s3_listing": ANSWERS,
        "url": URLS,
        "transfer": TRANSFERS,
        "range_plan": PLANS,
        "cache_entry": ENTRIES,
    }
    for fuzzer, seeds in made.items():
        folder = Path(__file__).parent / fuzzer
        folder.mkdir(exist_ok=True)
        for name, seed in seeds.items():
            (folder / name).write_bytes(seed)


if __name__ == "__main__":
    main()
