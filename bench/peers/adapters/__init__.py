# SPDX-License-Identifier: Apache-2.0
"""One module per peer, imported only in that peer's environment. child.py describes a module's functions."""
