# SPDX-License-Identifier: Apache-2.0
"""One module per peer, imported in that peer's environment alone. child.py says what a module has to offer."""
