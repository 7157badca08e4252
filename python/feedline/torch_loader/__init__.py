# SPDX-License-Identifier: Apache-2.0
"""What `feedline.DataLoader` is made of; `data_loader.py` is its public face. Imports torch."""
