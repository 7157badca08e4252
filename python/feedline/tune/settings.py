# SPDX-License-Identifier: Apache-2.0
"""Former home of the settings file's code: see loader/tuned_settings.py."""

from ..errors import SettingsWarning
from ..loader.tuned_settings import check, load_settings, machine_fingerprint, write

__all__ = ["SettingsWarning", "check", "load_settings", "machine_fingerprint", "write"]
