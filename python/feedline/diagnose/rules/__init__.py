# SPDX-License-Identifier: Apache-2.0
"""Code shared by the rules of several causes; each cause is a module in `feedline.diagnose.causes`."""
