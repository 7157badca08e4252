# SPDX-License-Identifier: Apache-2.0
"""What the rules of several causes share; a cause itself is a file of `feedline.diagnose.causes`."""
