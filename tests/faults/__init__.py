# SPDX-License-Identifier: Apache-2.0
"""Fault campaigns: ``tools/faults`` runs them."""
