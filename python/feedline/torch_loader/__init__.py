# SPDX-License-Identifier: Apache-2.0
"""The implementation of `feedline.DataLoader`; `data_loader.py` defines the public class. Imports torch."""
