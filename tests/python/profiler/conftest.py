# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

here = Path(__file__).parent
# after the fixtures of the parent folder, which also has a conftest.py
sys.path += [str(here), str(here.parent / "diagnose")]
