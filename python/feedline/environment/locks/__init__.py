# SPDX-License-Identifier: Apache-2.0
"""Files that say what an environment should hold, one module per family, all read to one form: a Listing."""
