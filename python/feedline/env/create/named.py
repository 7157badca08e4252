# SPDX-License-Identifier: Apache-2.0
"""The packages that a user names on the command line, as a listing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...errors import ConfigError
from ..locks.conda_files import conda_pin
from ..locks.listing import Listing
from ..locks.requirements import pins_of_lines
from ..reading.conda import channel_name

_SOURCE = "the command line"
_PYTHON = re.compile(r"python\s*(?:={1,2}\s*v?(\d+\.\d+(?:\.\d+)?)(?:\.\*)?)?")


def listing_of_names(packages: Sequence[str], channels: Sequence[str]) -> Listing:
    """Returns the listing of packages such as ``python=3.11``, ``torch>=2.9`` and ``numpy``.

    With `channels`, the packages are conda packages; otherwise they are pip projects, and ``python`` selects the
    interpreter.

    Raises:
        ConfigError: a package's name or version cannot be parsed.
    """
    if channels:
        pins = tuple(conda_pin(one, _SOURCE) for one in packages)
        python = next((pin.version or pin.spec.removesuffix(".*") for pin in pins if pin.name == "python"), "")
        return Listing(
            _SOURCE, "environment.yml", pins, python=python if re.fullmatch(r"[\d.]+", python) else "",
            channels=tuple(map(channel_name, channels)), complete=False,
        )  # fmt: skip
    python, lines = "", []
    for one in packages:
        found = _PYTHON.fullmatch(one.strip())
        if found:
            python = found[1] or ""
        elif re.match(r"python\b(?![-_.\w])", one):
            raise ConfigError(f"{_SOURCE}: {one!r} must be python or python=VERSION, such as python=3.11")
        elif one.startswith("-"):
            raise ConfigError(
                f"{_SOURCE}: {one!r} is not a package; write pip options in a file, and pass the file with --from"
            )
        else:
            lines.append(re.sub(r"(?<![=<>!~])=(?!=)", "==", one))  # conda's form: numpy=2.1
    pins = tuple(pins_of_lines(lines, _SOURCE, python))
    if not pins:
        raise ConfigError(f"{_SOURCE} names no packages besides python; pass at least one, such as numpy")
    return Listing(_SOURCE, "requirements", pins, python=python, complete=False)
