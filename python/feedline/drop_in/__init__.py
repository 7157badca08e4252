# SPDX-License-Identifier: Apache-2.0
"""What `feedline.DataLoader` is made of; `feedline/data_loader.py` is its public face. Imports torch."""
