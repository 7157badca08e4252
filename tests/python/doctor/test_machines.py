# SPDX-License-Identifier: Apache-2.0
"""On generated machines with one problem each, the problem is reported first. On machines without problems, nothing is
reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from made_hosts import Host, examined
from planted_hosts import PLANTED, SOUND
from planted_hosts import SSD as ROTATES_NOT

from feedline.doctor import screen
from feedline.doctor.causes import registered

SSD = "ext4 /dev/sda1 rw"


@pytest.mark.parametrize(("code", "host"), PLANTED.values(), ids=PLANTED)
def test_what_is_wrong_is_named_first(code: str, host: Host, tmp_path: Path) -> None:
    seen = examined(host, tmp_path)
    assert [finding.code for finding in seen.findings][:1] == [code]
    assert all(finding.evidence and finding.fix for finding in seen.findings)


@pytest.mark.parametrize(("files", "codes"), [(1500, ["small_files", "network_storage"]), (300, ["network_storage"])])
def test_a_folder_too_slow_to_be_counted_is_named(monkeypatch, files, codes, tmp_path: Path) -> None:
    monkeypatch.setattr("feedline.doctor.source._measured", lambda *_arguments: (files, files * 110_000, False))
    seen = examined(PLANTED["photos on NFS"][1].but(source_files={}), tmp_path)
    assert [finding.code for finding in seen.findings] == codes
    assert seen.findings[0].evidence[0].startswith(f"more than {files:,} files" if len(codes) > 1 else "")


@pytest.mark.parametrize(
    ("mount", "files", "size", "severity"),
    [
        (SSD, 10_001, 110_000, "note"),
        (SSD, 10_000, 110_000, None),
        (SSD, 25_000, 4_200_000, "warning"),  # 105 GB
        (SSD, 23_000, 4_200_000, None),  # 97 GB
        (SSD, 5_000, 40_000_000, None),  # 200 GB of large files
        ("ext4 /dev/vdb1 rw", 10_001, 110_000, "warning"),
        ("overlay overlay rw", 10_001, 110_000, "warning"),
        ("tmpfs tmpfs rw", 10_001, 110_000, None),
    ],
)
def test_scattered_files_are_found_on_any_disk(monkeypatch, mount, files, size, severity, tmp_path: Path) -> None:
    monkeypatch.setattr("feedline.doctor.source._measured", lambda *_arguments: (files, files * size, True))
    host = Host(ROTATES_NOT if mount is SSD else {}, mount=mount)
    found = {finding.code: finding for finding in examined(host, tmp_path).findings}
    assert (found["small_files"].severity if "small_files" in found else None) == severity
    if severity:
        assert f"{files:,} files" in found["small_files"].evidence[0]
        assert any("workers" in sentence for sentence in found["small_files"].evidence)


@pytest.mark.parametrize("host", SOUND.values(), ids=SOUND)
def test_nothing_is_reported_for_a_sound_machine(host: Host, tmp_path: Path) -> None:
    assert [(finding.code, finding.evidence) for finding in examined(host, tmp_path).findings] == []


def test_every_cause_of_a_machine_is_planted_somewhere() -> None:
    from planted_scripts import PLANTED as SCRIPTS

    planted = {code for code, _ in PLANTED.values()} | {code for code, _ in SCRIPTS.values()}
    assert {cause.page.code for cause in registered()} == planted


@pytest.mark.parametrize("text", ["", "\0\xff\n", "MemTotal: many kB\n", "9" * 5000])
def test_files_of_nonsense_make_no_finding_and_no_traceback(text: str, tmp_path: Path) -> None:
    """Returns all files except for those that contain the location of others."""
    from made_hosts import usual

    removed = ("proc/self/mountinfo", "proc/self/status")
    seen = examined(Host({name: text for name in usual() if name not in removed}), tmp_path)
    codes = {finding.code for finding in seen.findings}
    assert not codes & {"memory_low", "swap_in_use", "open_files_low", "cpu_governor", "commit_limit", "memory_needed"}
    assert any("memory" in sentence for sentence in seen.unseen)
    assert screen.lines(seen) and screen.as_dict(seen)


def test_a_machine_without_facts_is_reported_as_such(tmp_path: Path) -> None:
    from made_hosts import usual

    seen = examined(Host(dict.fromkeys(usual())), tmp_path)
    words = " ".join(seen.unseen)
    assert all(name in words for name in ("/proc/meminfo", "/proc/self/limits", "/proc/pressure", "control group"))
    assert not {finding.severity for finding in seen.findings} & {"critical", "error"}
