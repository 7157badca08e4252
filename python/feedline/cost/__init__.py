# SPDX-License-Identifier: Apache-2.0
"""Calculates the cost of waiting for data, and the job hours that a predicted gain saves."""

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
