# SPDX-License-Identifier: Apache-2.0
"""From what was recorded to the figures that verdicts rest on."""
