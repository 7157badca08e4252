# SPDX-License-Identifier: Apache-2.0
"""Run records: the results of a measurement and facts about its machine, as one JSON object. See docs/run-record.md.

``feedline report`` renders a record, ``feedline diff`` compares two.
"""

from __future__ import annotations

from feedline.errors import RecordError

from .diagnosis import from_diagnosis
from .files import VERSION, check, envelope, is_replaced, read, replace, write

__all__ = ["RecordError", "VERSION", "check", "envelope", "from_diagnosis", "is_replaced", "read", "replace", "write"]
