# SPDX-License-Identifier: Apache-2.0
"""Runs parts of a batch command on other machines."""
