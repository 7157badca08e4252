# SPDX-License-Identifier: Apache-2.0
"""The implementation of `feedline.DataLoader`, whose public class is in `data_loader.py`. Imports torch."""
