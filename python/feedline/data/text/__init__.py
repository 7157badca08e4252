# SPDX-License-Identifier: Apache-2.0
"""Text to tokens: tokenizers of other libraries, chat templates, loss masks."""
