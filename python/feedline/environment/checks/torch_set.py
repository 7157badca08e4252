# SPDX-License-Identifier: Apache-2.0
"""torch, torchvision and torchaudio that are not of one set."""

import re

from ..checking import NEEDS, Case, Check, Told, page, told

_SET = ("torchvision", "torchaudio")


def _judges(case: Case) -> Told:
    first = case.seen.first
    torch = first.get("torch")
    if torch is None:
        return
    needs = {need.owner.partition(" ")[0]: need for need in case.needs if need.of_torch_set}
    for name in _SET:
        other = first.get(name)
        if other is None:
            continue
        why = ""
        if name in needs:
            why = f"needs {needs[name].wants}, and torch {torch.version} is here"
        elif _device(other.version) and _device(torch.version) and _device(other.version) != _device(torch.version):
            why = f"was built for {_device(other.version)}, and torch {torch.version} for {_device(torch.version)}"
        if why:
            yield told(
                "torch_set", "error", f"{name} {other.version} {why}",
                fix=f"Install them in one command, from one index: pip install torch=={torch.version} {' '.join(_SET)}",
                package=name,
            )  # fmt: skip


def _device(version: str) -> str:
    found = re.search(r"\+(cpu|cu\d+|rocm[\d.]+|xpu)", version)
    return found[1] if found else ""


CHECK = Check(
    page(
        code="torch_set",
        title="torch, torchvision and torchaudio do not belong together",
        means="The others are compiled against one version and one device of torch. With another, imports fail "
        "with undefined "
        "symbols, or operators are missing.",
        recognised="torchvision or torchaudio require another torch than the one here, or were built for another "
        "device.",
        to_do="Install all of them in one command from one index.",
        example="torchvision 0.27.0 needs torch==2.12.0, and torch 2.13.0 is here",
    ),
    NEEDS,
    _judges,
)
