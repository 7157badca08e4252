# SPDX-License-Identifier: Apache-2.0
"""What will go wrong in a run, said before it: the machine, the planned loader and the script, judged by rules."""
