# SPDX-License-Identifier: Apache-2.0
"""Recognises frameworks' datasets and finds the files, images and labels of their samples."""
