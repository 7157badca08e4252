# SPDX-License-Identifier: Apache-2.0
"""Processor data from generated /proc and /sys; packages and builds from generated metadata."""

from __future__ import annotations

import json
from pathlib import Path

from feedline.machine.packages import package_facts
from feedline.machine.processor import processor_facts


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_virtual_xeon(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "proc/cpuinfo": "model name\t: X\nflags\t\t: fpu sse4_2 avx512f avx2 hypervisor rep_good\n",
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/smt/control": "on\n",
            "sys/devices/system/node/node0/cpulist": "0-3",
            "sys/devices/system/node/node1/cpulist": "4-7",
            "sys/devices/system/node/online": "0-1",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        },
    )
    assert processor_facts(root) == {
        "cpu_flags": "avx2 avx512f sse4_2",
        "hypervisor": True,
        "cpu_max_mhz": 3500,
        "cpu_governor": "powersave",
        "smt": "on",
        "numa_nodes": 2,
        "huge_pages": "madvise",
    }


def test_what_a_machine_hides_is_left_out(tmp_path: Path) -> None:
    assert processor_facts(tmp_path) == {}
    arm = write(tmp_path, {"proc/cpuinfo": "Features\t: fp asimd asimddp sve\n"})
    assert processor_facts(arm) == {"cpu_flags": "asimd asimddp sve", "hypervisor": False}


def test_versions_and_builds_of_pip_and_conda(tmp_path: Path) -> None:
    site = tmp_path / "site"
    wheel = "Wheel-Version: 1.0\nTag: cp311-cp311-{}\n"
    write(
        site,
        {
            "torch-2.9.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n",
            "torch-2.9.0.dist-info/WHEEL": wheel.format("manylinux_2_28_x86_64"),
            "torch-2.9.0.dist-info/INSTALLER": "uv\n",
            "Pure_Thing-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: Pure_Thing\nVersion: 1\n",
            "Pure_Thing-1.dist-info/WHEEL": "Tag: py3-none-any\n",
            "numpy-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: numpy\nVersion: 2.0\n",
            "broken-1.dist-info/METADATA": "",
        },
    )
    conda = {"name": "numpy", "version": "2.0", "build": "py311h64a7726_0"}
    write(
        tmp_path,
        {"conda-meta/numpy-2.0.json": json.dumps(conda), "conda-meta/bad.json": "{", "conda-meta/x.json": "[]"},
    )
    assert package_facts(tmp_path, [str(site)]) == {
        "numpy": "2.0 (py311h64a7726_0, conda)",
        "pure-thing": "1",
        "torch": "2.9.0 (manylinux_2_28_x86_64, uv)",
    }
