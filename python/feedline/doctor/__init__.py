# SPDX-License-Identifier: Apache-2.0
"""Pre-flight checks: rules that examine the machine, the planned loader and the script before a run."""
