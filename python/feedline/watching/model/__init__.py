# SPDX-License-Identifier: Apache-2.0
"""What a change would gain: pure functions of measured times."""
