# SPDX-License-Identifier: Apache-2.0
"""MKL does not work with the installed torch."""

import re

from ...rules import NEEDS, Analysis, Check, Problems, page, problem

_REMOVED_IN = (2024, 1)  # MKL without iJIT_NotifyEvent, which these builds of torch need (pytorch/pytorch#123097)
_FIRST_WITHOUT_NEED = (2, 3)


def _evaluate(analysis: Analysis) -> Problems:
    seen = analysis.seen
    packages = {one.name: one for one in seen.packages}
    mkl, pytorch = packages.get("mkl"), packages.get("pytorch")
    needs = pytorch is not None and pytorch.channel == "pytorch" and _pair(pytorch.version) < _FIRST_WITHOUT_NEED
    if mkl is not None and pytorch is not None and needs and _pair(mkl.version) >= _REMOVED_IN:
        yield problem(
            "mkl_conflict", "error",
            f"pytorch {pytorch.version} from the channel pytorch does not run with mkl {mkl.version}",
            fix='conda install "mkl<2024.1"', mkl=mkl.version,
        )  # fmt: skip
    torch = seen.first.get("torch")
    layer = seen.variables.get("MKL_THREADING_LAYER", "")
    if layer.upper() == "INTEL" and torch is not None and not seen.is_condas(torch):
        yield problem(
            "mkl_conflict", "warning",
            f"MKL_THREADING_LAYER={layer}, but torch {torch.version} is a wheel, which has GNU's OpenMP",
            fix="Unset MKL_THREADING_LAYER, or set it to GNU", layer=layer,
        )  # fmt: skip


def _pair(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


CHECK = Check(
    page(
        code="mkl_conflict",
        title="MKL does not work with the installed torch",
        means="`import torch` fails with `undefined symbol: iJIT_NotifyEvent`, or numpy fails with "
        "`MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1`.",
        recognised="conda's pytorch before 2.3 from the channel pytorch with MKL 2024.1 or later; or "
        "MKL_THREADING_LAYER=INTEL with torch from a wheel.",
        to_do="Install an older MKL, or remove the variable.",
        example="pytorch 2.2.2 from the channel pytorch does not run with mkl 2024.1.0",
    ),
    NEEDS + 20,
    _evaluate,
)
