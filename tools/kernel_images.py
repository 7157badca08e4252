# SPDX-License-Identifier: Apache-2.0
"""Compiles src/device/cuda/kernels with CUDA's run-time compiler and writes the images as C++ (tools/kernels)."""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import re
import sys
import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "src/device/cuda/kernels"
MADE = FOLDER / "image_bytes.inc"
SOURCES = ("pixel_job.h", "pixel_kernels-inl.h", "cached_rows-inl.h", "cached_colours-inl.h", "entries.cu")
# A GPU runs code for its own generation, from the same minor version or an earlier one, so one image covers 7.0 to 7.5,
# another 8.0 to 8.9, and so on. Later generations translate the PTX.
CODE = ((7, 0), (8, 0), (9, 0), (10, 0), (12, 0))
PTX = (7, 0)
# the earliest version of PTX with sm_70: any driver that supports the GPU can translate it
PTX_VERSION = "6.0"
# no fused multiply-add, and subnormal numbers are kept, as in the CPU's code, which is compiled with -ffp-contract=off
OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false")
PREFACE = '#define FEEDLINE_DEVICE __device__\n#define FEEDLINE_ROLLED _Pragma("unroll 1")\n'


def without_comments(text: str) -> str:
    """Returns the code without comments, so that rewording a comment does not change the digest."""
    lines = (re.sub(r"\s*//.*", "", line) for line in text.splitlines())
    return "".join(line + "\n" for line in lines if line)


def source() -> str:
    return PREFACE + "".join(without_comments((FOLDER / name).read_text()) for name in SOURCES)


def digest() -> str:
    """Returns the SHA-256 of everything that affects the images, except for the compiler."""
    return hashlib.sha256(repr((source(), CODE, PTX, PTX_VERSION, OPTIONS)).encode()).hexdigest()


class Compiler:
    """Returns NVRTC from an installed ``nvidia-cuda-nvrtc-cu12``."""

    def __init__(self, packages: Path) -> None:
        folder = packages / "nvidia/cuda_nvrtc/lib"
        for name in ("libnvrtc-builtins.so.12.9", "libnvrtc.so.12"):
            self._library = ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)

    def version(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def compile(self, architecture: str) -> bytes:
        """Compiles code for ``sm_NN``, or PTX for ``compute_NN``.

        Raises:
            SystemExit: the compiler rejects the source; its messages are printed.
        """
        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram", ctypes.byref(program), source().encode(), b"feedline_kernels.cu", 0, None, None
        )
        words = [option.encode() for option in (f"--gpu-architecture={architecture}", *OPTIONS)]
        if self._library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words)):
            print(self._text("ProgramLog", program).decode(), file=sys.stderr)
            raise SystemExit(1)
        return self._text("CUBIN" if architecture.startswith("sm_") else "PTX", program)

    def _text(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, text)
        return text.raw

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise SystemExit(f"{name} failed with status {status}")


def images(compiler: Compiler) -> dict[str, bytes]:
    """Returns by name: code as an ELF file, and PTX as text that ends with a NUL, as the driver requires."""
    made = {f"sm_{major}{minor}": compiler.compile(f"sm_{major}{minor}") for major, minor in CODE}
    ptx = compiler.compile(f"compute_{PTX[0]}{PTX[1]}").decode()
    lines = [f".version {PTX_VERSION}" if line.startswith(".version ") else line for line in ptx.split("\n")]
    made[f"compute_{PTX[0]}{PTX[1]}"] = "\n".join(lines).encode()
    return made


def written(made: dict[str, bytes], version: str) -> str:
    """Returns the source that images.cpp includes."""
    text = "// SPDX-License-Identifier: Apache-2.0\n"
    text += f"// Made by tools/kernels with NVRTC {version}; deflated.\n\n"
    text += f'constexpr std::string_view kSourceDigest = "{digest()}";\n\n'
    table = ""
    for name, image in made.items():
        small = zlib.compress(image, 9)
        text += f"constexpr unsigned char k_{name}[] = {{\n"
        line = ""
        for byte in small:
            if len(line) > 115:
                text, line = f"{text}{line}\n", ""
            line += f"{byte},"
        text += f"{line}\n}};\n\n"
        kind, digits = name.split("_")
        is_ptx = "true" if kind == "compute" else "false"
        table += f'    {{"{name}", {digits[:-1]}, {digits[-1]}, {is_ptx}, {len(image)}, k_{name}, sizeof k_{name}}},\n'
    return f"{text}constexpr StoredImage kImages[] = {{\n{table}}};\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", type=Path, required=True, metavar="DIR")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    compiler = Compiler(arguments.compiler)
    text = written(images(compiler), compiler.version())
    if arguments.check:
        if text != MADE.read_text():
            raise SystemExit(f"{MADE.name} does not match its source: run tools/kernels")
        print(f"{MADE.name} matches its source")
        return
    MADE.write_text(text)
    print(f"wrote {MADE.name}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
