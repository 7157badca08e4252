# SPDX-License-Identifier: Apache-2.0
"""Images of vision-language models: sizes, numbers of tokens, and inputs of vision encoders."""
