# SPDX-License-Identifier: Apache-2.0
"""What all tests share: how long anything takes on this machine is no property of what they test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_machine")
