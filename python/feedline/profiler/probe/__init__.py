# SPDX-License-Identifier: Apache-2.0
"""Code that runs inside the profiled script."""
