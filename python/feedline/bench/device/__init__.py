# SPDX-License-Identifier: Apache-2.0
"""``feedline bench --device``: what the link to a GPU gives, and how much of a copy hides under the training step."""
