# SPDX-License-Identifier: Apache-2.0
"""Rare kinds of JPEGs: Pillow's pixels if libjpeg-turbo decodes them, otherwise errors that name the kind."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

import feedline

# 40 x 30, 4:2:0, written by libjpeg-turbo with arithmetic coding, which Pillow does not write
ARITHMETIC = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5a"
    "YVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//yQAR"
    "CAAeACgDASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD/AI2MNQUUl2tUaJzqgMUuI8WmS9ZbpdL133PwxI7ocWM8PHxL7F0g"
    "D6h17eU6ne4xmi80YShZcXa8wVuMEbuZTjhCyl++CHCrCw+bz/tfZ78SRXJ16BKPLlxCY4SIw5xtn+m9h23CJsT2CC9hHmsqc4aRDhgp6xIV"
    "MX4mfND+GXiGuZbpw2X15tbUsxPUnB9G2ax7MunkfqXDH8iWMEVVG4vX1N90FXHHXeJVtindWBNDO9l6jGjPuveCYFkahBc0ne98AED/2Q=="
)
ARITHMETIC_PROGRESSIVE = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5a"
    "YVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//ygAR"
    "CAAeACgDASIAAhEBAxEB/8wABgAQARD/2gAMAwEAAhADEAAAAf8AFBIQNyRZvTJ1+59wbZpjYDF4XaCldddrs+MY/8wABBAF/9oACAEBAAEF"
    "AhMyy9yudh1pAYGHcn/PSlcPSP/MAAQRBf/aAAgBAwEBPwEXvOjIKsORNv/MAAQRBf/aAAgBAgEBPwEX09UnmXqRT4EIzjt5XP/MAAQQBf/a"
    "AAgBAQAGPwKw/8wABBAF/9oACAEBAAE/IYrReE722z8vcERZldzL/ngATf72ZNG0/9oADAMBAAIAAwAAABAJRAoQIP/MAAQRBf/aAAgBAwEB"
    "PxBgzuYmlGt2/8wABBEF/9oACAECAQE/EJPJUZnmhy/FBeN6X6KmjJgBquBQdnQPqeXlnhnfEKj/zAAEEAX/2gAIAQEAAT8Q00pHJVKSMAEX"
    "NxKb5lSoI/4Nc+Po0gFw/PBOFrDdPicHVV3qd+v7BQIvDXmMI4N44QYoyo0k/9k="
)


@pytest.mark.parametrize("text", [ARITHMETIC, ARITHMETIC_PROGRESSIVE], ids=["sequential", "progressive"])
def test_arithmetic_coding_has_pillows_pixels(text: str) -> None:
    data = base64.b64decode(text)
    try:
        expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except OSError as error:
        pytest.skip(f"this Pillow's libjpeg has no arithmetic coding: {error}")
    assert np.array_equal(feedline.decode_image(data), expected)
    assert np.array_equal(feedline.decode_image(data, (7, 5, 33, 28)), expected[5:28, 7:33])


def plain() -> bytearray:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(stream, "JPEG")
    return bytearray(stream.getvalue())


def test_twelve_bits_are_refused_by_name_as_pillow_refuses_them() -> None:
    data = plain()
    data[data.index(b"\xff\xc0") + 4] = 12
    with pytest.raises(feedline.DataError, match="JPEG of 12 bits per sample is not supported: write a PNG"):
        feedline.decode_image(data)
    with pytest.raises((OSError, SyntaxError)):
        Image.open(io.BytesIO(data)).load()


def test_lossless_ones_are_refused_by_name() -> None:
    data = plain()
    data[data.index(b"\xff\xc0") + 1] = 0xC3
    with pytest.raises(feedline.DataError, match="lossless JPEG is not supported: write it as PNG"):
        feedline.decode_image(data)
