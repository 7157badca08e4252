# SPDX-License-Identifier: Apache-2.0
"""What is tried after the script has ended, and how."""
