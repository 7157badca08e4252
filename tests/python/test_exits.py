# SPDX-License-Identifier: Apache-2.0
"""Memory of batches that outlives Python's threads: whichever thread releases it, at any time, the process exits
normally.

Libraries take tensors by DLPack and use them in their own threads. Such a thread must not wait for the GIL: up to
Python 3.13, it is ended there while Python exits, which aborts the process, and from 3.14 on, it hangs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running_processes import HANG_S

# Used instead of torch, which is slow to import and cannot be told when to release memory: it passes the first array to
# a C thread. Functions of this program would keep its globals alive, whose end some of the cases test.
PROGRAM = """
import atexit, ctypes, os, sys, types
import numpy
import feedline

library = ctypes.CDLL(sys.argv[1])
library.hold.argtypes = [ctypes.c_void_p]
names = {"library": library, "ctypes": ctypes, "taken": []}
exec('''
def from_dlpack(array):
    capsule = array.__dlpack__() if hasattr(array, "__dlpack__") else array
    if not taken:
        pointer, name = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_SetName
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        name.argtypes = [ctypes.py_object, ctypes.c_char_p]
        taken.append(pointer(capsule, b"dltensor"))
        name(capsule, b"used_dltensor")
        assert library.hold(taken[0]) == 0
    return array
''', names)
for name in ("torch", "torch.utils", "torch.utils.dlpack"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["torch.utils.dlpack"].from_dlpack = names["from_dlpack"]

class AtItsEnd:
    library, write, wait_s = library, os.write, int(sys.argv[2])
    def __del__(self):
        self.write(1, b"hangs" if self.library.let_go(self.wait_s) else b"let go of")

def lend():
    engine = feedline.arrays(x=numpy.arange(4000.0).reshape(1000, 4))._engine
    loader = feedline._engine.make_loader(engine, {"batch_size": 4, "num_workers": 1})
    loader.next_arrays(loader.start_epoch(), True)
    loader.close()
    assert names["taken"]
"""

MOMENTS = {
    "while Python runs": "lend(); AtItsEnd()",
    "in an exit handler before the engine's": "lend(); kept = AtItsEnd(); "
    "atexit.register(lambda: globals().pop('kept'))",
    "as its module ends": "lend(); kept = AtItsEnd()",
    "as a module of others ends": "lend(); sys.modules['others'] = types.ModuleType('others'); "
    "sys.modules['others'].kept = AtItsEnd()",
    "as a cycle is collected at the end": "lend(); kept = AtItsEnd(); kept.itself = kept; del kept",
    "when Python has ended": "lend(); library.let_go_at_end(int(sys.argv[2])); os.write(1, b'let go of')",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the library that holds an array")
    made = tmp_path_factory.mktemp("library") / "liblent_array.so"
    source = Path(__file__).with_name("lent_array.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-pthread", source, "-o", made], check=True)
    return made


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_thread_of_others_lets_go_of_a_batch(moment: str, library: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", PROGRAM + MOMENTS[moment], str(library), str(HANG_S)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * HANG_S)
    assert (done.returncode, done.stdout) == (0, "let go of"), done.stderr
