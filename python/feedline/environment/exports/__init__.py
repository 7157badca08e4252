# SPDX-License-Identifier: Apache-2.0
"""An environment written down in the forms of other tools: one module per family."""
