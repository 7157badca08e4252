# SPDX-License-Identifier: Apache-2.0
"""A loader's options: declaration, validation, and automatic choice."""
