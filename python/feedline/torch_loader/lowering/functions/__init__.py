# SPDX-License-Identifier: Apache-2.0
"""Recognises functions that process batches: collate functions, and functions for Hugging Face's datasets."""
