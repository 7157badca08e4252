# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

here = Path(__file__).parent
sys.path += [str(here), str(here.parent / "diagnose")]  # summaries with which rules are tested
