# SPDX-License-Identifier: Apache-2.0
"""The wheels on other systems, installed there with the systems' own pip: `tools/test --systems`.

FEEDLINE_SYSTEMS names the folder with the systems' roots (`tools/systems` creates them), FEEDLINE_WHEELS a folder with
wheels. Entering a system requires root; a system for another processor is run by qemu-user. Without both variables, the
tests are skipped.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image

SYSTEMS = os.environ.get("FEEDLINE_SYSTEMS")
WHEELS = os.environ.get("FEEDLINE_WHEELS")
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux2014")
EMULATED = ("aarch64",)  # systems that are called as their processor
PLACE = Path("/opt/feedline-test")
KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    (".jpg", {"quality": 90}),
    (".jpg", {"quality": 70, "progressive": True}),
    (".png", {}),
    (".webp", {"quality": 80}),
    (".webp", {"lossless": True}),
)

# Prints how many samples an epoch of each source has, and a digest of it: it draws, decodes, rotates, resizes, changes
# colours, blends and normalizes, in two threads.
EPOCH = """
import hashlib, sys
import feedline
for source in sys.argv[1:]:
    data = feedline.open(source).random_rotation(20, interpolation="bilinear").random_resized_crop(64)
    data = data.color_jitter(0.4, 0.4, 0.4, 0.1).aug_mix().timm_augment("rand-m9-n3")
    data = data.normalize(feedline.IMAGENET_MEAN, feedline.IMAGENET_STD)
    digest = hashlib.sha256()
    with data.loader(8, shuffle=True, seed=0, output="numpy", num_workers=2) as loader:
        for batch in loader:
            digest.update(batch.image.tobytes() + batch.label.tobytes())
    print(loader.stats()["samples"], digest.hexdigest())
"""
# /proc, /sys and /dev are there for this one process and what it starts
ENTER = """
mount --rbind /proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
exec chroot "$0" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$@"
"""
# For them, too, the kernel gives ELF files of aarch64 to qemu: from Linux 6.7 a user namespace has its own binfmt_misc.
# An earlier kernel refuses, and what is registered for the whole machine serves.
MAGIC = r"\x7fELF\x02\x01\x01" + 9 * r"\x00" + r"\x02\x00\xb7\x00"
MASK = 7 * r"\xff" + r"\x00" + 8 * r"\xff" + r"\xfe\xff\xff\xff"
QEMU = shutil.which("qemu-aarch64-static")
EMULATE = f"""
if mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null; then
  printf %s ':feedline:M::{MAGIC}:{MASK}:{QEMU}:F' >/proc/sys/fs/binfmt_misc/register || exit
fi
"""

pytestmark = pytest.mark.skipif(
    SYSTEMS is None or WHEELS is None or os.geteuid() != 0, reason="root runs it by tools/test --systems"
)


def roots() -> list[str]:
    """Those that were set up, and those for another processor, whose packages are unpacked alone."""
    set_up = [path.parents[1].name for path in Path(SYSTEMS or "/nowhere").glob("*/etc/passwd")]
    return sorted({name for name in set_up if not name.endswith(".part")} | set(EMULATED))


class System(NamedTuple):
    root: Path
    machine: str
    version: str  # of its Python: 3.13

    def enter(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        words = ["unshare", "--mount", "sh", "-c", ENTER]
        if self.machine != platform.machine():
            words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", EMULATE + ENTER]
        return subprocess.run([*words, str(self.root), *map(str, command)], capture_output=True, text=True, cwd="/")

    def run(self, *command: str | Path) -> str:
        done = self.enter(*command)
        assert done.returncode == 0, (command, done.returncode, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout

    def feedline(self, *arguments: str) -> str:
        return self.run(PLACE / "venv/bin/feedline", *arguments)


def wheel_for(version: str, machine: str) -> Path:
    tag = "cp311-cp311" if version == "3.11" else "cp312-abi3"
    found = sorted(Path(WHEELS or "/nowhere").glob(f"feedline-*-{tag}-*_{machine}.whl"))
    if not found:
        pytest.skip(f"no wheel for Python {version} on {machine} in {WHEELS}")
    return found[-1]


def entered(root: Path) -> System:
    """The system, once it has said which Python it has."""
    found = System(root, root.name if root.name in EMULATED else platform.machine(), "")
    emulated = found.machine != platform.machine()
    if emulated and QEMU is None:
        pytest.skip("qemu-user is not installed: tools/systems aarch64 installs it")
    done = found.enter("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    if emulated and "Exec format error" in done.stderr:
        pytest.skip(f"no program of {found.machine} runs here: Linux 6.7 gives it to qemu, or a rule in binfmt_misc")
    assert done.returncode == 0, done.stderr
    return found._replace(version=done.stdout.strip())


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 24 photos in class folders, and a tar of the same: JPEG of both kinds, PNG and WebP."""
    from feedline.demo import pictures

    folder = tmp_path_factory.mktemp("photos")
    pictures.make(folder / "photos", 24)
    for number, path in enumerate(sorted((folder / "photos").glob("*/*"))):
        suffix, options = KINDS[number % len(KINDS)]
        with Image.open(path) as image:
            image.load()
        path.unlink()
        image.save(path.with_suffix(suffix), **options)
    with tarfile.open(folder / "photos.tar", "w") as tar:
        for number, path in enumerate(sorted((folder / "photos").glob("*/*"))):
            tar.add(path, f"{number:04}{path.suffix}")
            label = folder / "label.cls"
            label.write_text(str(number % 3))
            tar.add(label, f"{number:04}.cls")
    return folder


@pytest.fixture(scope="module", params=roots())
def system(request: pytest.FixtureRequest, photos: Path) -> Iterator[System]:
    """A system with the wheel in an environment of its own, made by its own venv and pip, without a network."""
    root = Path(SYSTEMS or "/nowhere") / request.param
    if not root.is_dir():
        pytest.skip(f"no system {request.param} in {SYSTEMS}: tools/systems {request.param} makes it")
    inside = root / PLACE.relative_to("/")
    shutil.rmtree(inside, ignore_errors=True)
    inside.mkdir(parents=True)
    found = entered(root)
    wheel = wheel_for(found.version, found.machine)
    options = [word for name in PLATFORMS for word in ("--platform", f"{name}_{found.machine}")]
    download = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "-d", str(inside / "wheels")]
    subprocess.run([*download, *options, "--python-version", found.version, str(wheel)], check=True)
    for name in ("photos", "photos.tar"):
        (shutil.copytree if (photos / name).is_dir() else shutil.copy)(photos / name, inside / name)
    found.run("python3", "-m", "venv", PLACE / "venv")
    install = ("-m", "pip", "install", "-q", "--no-compile", "--no-index", "--find-links", PLACE / "wheels", "feedline")
    found.run(PLACE / "venv/bin/python", *install)
    yield found
    shutil.rmtree(inside, ignore_errors=True)


def test_the_same_batches_come_out_of_folders_and_tars(system: System, photos: Path) -> None:
    sources = ("photos", "photos.tar")
    there = system.run(PLACE / "venv/bin/python", "-c", EPOCH, *(PLACE / name for name in sources))
    words = [sys.executable, "-c", EPOCH, *(str(photos / name) for name in sources)]
    here = subprocess.run(words, check=True, capture_output=True, text=True, cwd="/").stdout
    assert there == here and [line.split()[0] for line in there.splitlines()] == ["24", "24"]


def test_the_command_reports_what_it_does(system: System) -> None:
    said = set(system.feedline("--help").split())
    assert {"bench", "demo", "diagnose", "doctor", "env", "inspect", "pack"} <= said


def test_the_demo_runs(system: System) -> None:
    """It makes photos, splits them, and goes on where it stopped, with the same batches: or it exits with 3."""
    found = json.loads(system.feedline("demo", "--images", "40", "--seconds", "0.2", "--json"))
    assert found["samples"] == 40 and found["feedline"]["images"] > 0 and found["resumed"]["batches"] > 0, found


def test_doctor_looks_at_the_machine(system: System) -> None:
    script = f"{PLACE}/venv/bin/feedline doctor --json; test $? -le 1"
    found = json.loads(system.run("sh", "-c", script))
    machine = found["machine"]
    assert machine["cpus"]["online"] == os.cpu_count() and machine["kernel"] == platform.release(), found
    assert machine["memory"]["told"] and machine["memory"]["physical"] > 0, found
