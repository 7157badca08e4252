# SPDX-License-Identifier: Apache-2.0
"""One module for each subject; each has a dict `CASES` of functions that trigger one refusal."""
