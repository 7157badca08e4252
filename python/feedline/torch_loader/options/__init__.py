# SPDX-License-Identifier: Apache-2.0
"""Options: declared, checked, chosen by rules."""
