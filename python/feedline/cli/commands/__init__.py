# SPDX-License-Identifier: Apache-2.0
"""The subcommands, one module each; root imports a module only when its command runs."""
