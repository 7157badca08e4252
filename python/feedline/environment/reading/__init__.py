# SPDX-License-Identifier: Apache-2.0
"""What an environment holds, read from its files: nothing is imported from it, and no program is started."""
