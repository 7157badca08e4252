# SPDX-License-Identifier: Apache-2.0
"""What waiting costs: GPU-hours, energy and money, and the hours that a promised gain saves of a job."""

from .price import NO_PRICE, PRICE, Price, price_of
from .spent import Spent, amounts, as_amounts, as_dict, lines, of_record, of_run, saved_hours

__all__ = [
    "NO_PRICE",
    "PRICE",
    "Price",
    "Spent",
    "amounts",
    "as_amounts",
    "as_dict",
    "lines",
    "of_record",
    "of_run",
    "price_of",
    "saved_hours",
]
