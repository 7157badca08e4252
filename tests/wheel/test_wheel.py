# SPDX-License-Identifier: Apache-2.0
"""The repaired wheel works in an empty environment with only its declared dependencies, and contains every codec that
it uses.

The wheel is the one that FEEDLINE_WHEEL names, or the one for this Python in dist/, or tools/wheel creates it. A wheel
for another processor is examined if tools/wheel has created it.
"""

import base64
import email
import importlib.metadata
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# One colour each, 48 x 32. JPEG and lossy WebP may miss it by one step.
COLOURS = [[200, 30, 40], [20, 180, 60], [30, 60, 210]]
JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMUFRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkU"
    "DQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBT/wAARCAAgADADAREAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcI"
    "CQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlq"
    "c3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAEC"
    "AwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpj"
    "ZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDwSvz8"
    "/uAKACgAoAKACgAoAKACgAoAKACgAoAKACgAoAKACgAoAKACgAoAKACgD//Z"
)
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAADAAAAAgCAIAAADbtmxLAAAAPklEQVR4nO3OMQHAIADAMEDD5CAbgfv39GRHoiDzOXv8ybod+BIqQkWoCBWhIlSEilARKkJFqAgVoSJUhMoLvZwB"
    "RM50y6UAAAAASUVORK5CYII="
)
WEBP = (
    "UklGRkoAAABXRUJQVlA4ID4AAABQAwCdASowACAAPjEYikOiIaEStAAgAwSzgDsAfgAAK/fDcAD++U8///5xF+cRfnEX/nEX//zBK/IN1yAAAA=="
)

BUNDLED = ("libdeflate", "libjpeg", "liblz4", "libsnappy", "libspng", "liburing", "libwebp", "libyaml", "libzstd")
# What the manylinux policies let a wheel expect of the system: the C and C++ run-times, and zlib, which CPython needs.
PLATFORM = re.compile(
    r"(ld-linux[-\w]*|libc|libm|libmvec|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz)\.so(\.[\d.]+)?"
)

PAGES = {"x86_64": 4096, "aarch64": 65536}  # the largest that a kernel of that processor has: Grace's are that large

NEEDS = ["numpy", "click", "rich", "fastjsonschema"]  # what the wheel names: pure Python, but for numpy
OF_RICH = ["markdown-it-py", "mdurl", "pygments"]  # and what these need


@pytest.fixture(scope="session")
def wheel():
    if named := os.environ.get("FEEDLINE_WHEEL"):
        return Path(named)
    tag = "cp311-cp311" if sys.version_info[:2] == (3, 11) else "cp312-abi3"
    pattern = f"feedline-*-{tag}-*_{platform.machine()}.whl"
    found = list((ROOT / "dist").glob(pattern))
    if not found:
        subprocess.run([ROOT / "tools/wheel", "--python", sys.executable], check=True)
        found = list((ROOT / "dist").glob(pattern))
    assert len(found) == 1, found
    return found[0]


@pytest.fixture(scope="session")
def empty_python(wheel, tmp_path_factory):
    """The interpreter of an environment that has pip, the wheel and what it needs, copied from ours: no network."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    for file in (file for name in NEEDS + OF_RICH for file in importlib.metadata.files(name) or []):
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True)
    return python


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """The three images as a folder of class folders and as a compressed tar."""
    folder = tmp_path_factory.mktemp("photos")
    images = {"jpg": JPEG, "png": PNG, "webp": WEBP}
    with tarfile.open(folder / "photos.tar.gz", "w:gz", format=tarfile.USTAR_FORMAT) as tar:
        for label, (suffix, text) in enumerate(images.items()):
            image = folder / f"photos/class_{label}/0.{suffix}"
            image.parent.mkdir(parents=True)
            image.write_bytes(base64.b64decode(text))
            (folder / "label").write_text(str(label))
            tar.add(image, f"{label}.{suffix}")
            tar.add(folder / "label", f"{label}.cls")
    return [str(folder / "photos"), str(folder / "photos.tar.gz")]


def run(python, *arguments, modules=None, prefix=()):
    """The report of reads_images.py, run with nothing of this process's environment and from another folder."""
    environment = ["env", "-i", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", f"HOME={python.parent}"]
    done = subprocess.run(
        [*prefix, *environment, python, "-I", HERE / "reads_images.py", *arguments],
        input=json.dumps(modules or []),
        capture_output=True,
        text=True,
        cwd="/",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def report(empty_python, photos):
    return run(empty_python, *photos)


def assert_colours(report, photos):
    for source in photos:
        assert len(report[source]) == len(COLOURS)
        for found, colour in zip(report[source], COLOURS, strict=True):
            assert all(abs(f - c) <= 2 for f, c in zip(found, colour, strict=True)), (source, report[source])


def test_it_needs_what_it_names_and_no_more(empty_python):
    listed = subprocess.run(
        [empty_python, "-m", "pip", "list", "--format=json"], check=True, capture_output=True, text=True
    )
    assert {entry["name"].lower() for entry in json.loads(listed.stdout)} - {"setuptools"} == {
        "feedline",
        "pip",
        *NEEDS,
        *OF_RICH,
    }
    subprocess.run([empty_python, "-m", "pip", "check"], check=True)


def test_the_command_and_its_demo_run_on_the_wheel_alone(empty_python):
    command = [empty_python.parent / "feedline", "demo", "--images", "40", "--seconds", "0.2"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", timeout=600)
    assert "40 photos in 10 classes" in done.stdout and "byte for byte" in done.stdout
    assert "install torch and Pillow" in done.stdout


def test_it_reads_a_folder_and_a_tar(report, empty_python, photos):
    assert Path(report["feedline"]).is_relative_to(empty_python.parents[1])
    assert_colours(report, photos)


def test_every_shared_object_it_maps_is_its_own_or_the_platforms(report, empty_python):
    home = empty_python.parents[1].resolve()
    without = run(empty_python, modules=report["modules"])
    added = [path for path in set(report["mapped"]) - set(without["mapped"]) if not Path(path).is_relative_to(home)]
    assert [path for path in added if not PLATFORM.fullmatch(Path(path).name)] == []
    codecs = [path for path in report["mapped"] if Path(path).name.startswith(BUNDLED)]
    assert {name for name in BUNDLED for path in codecs if Path(path).name.startswith(name)} == set(BUNDLED)
    assert [path for path in codecs if not Path(path).is_relative_to(home)] == []


def test_it_works_where_the_codecs_of_the_system_are_unusable(empty_python, photos, report):
    """Again with an empty file mounted over every such library of the system."""
    system = [
        path for folder in ("/lib", "/usr/lib", "/usr/local/lib") for path in Path(folder).glob("**/*.so*")
        if path.is_file() and path.name.startswith((*BUNDLED, "libhwy", "libpng", "libsharpyuv"))
    ]  # fmt: skip
    namespace = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if subprocess.run([*namespace, "true"], capture_output=True).returncode != 0:
        pytest.skip("no private mount namespace here")
    hide = 'while [ "$1" != -- ]; do mount --bind /dev/null "$1" || exit; shift; done; shift; exec "$@"'
    hidden = sorted({str(path.resolve()) for path in system})
    prefix = [*namespace, "sh", "-c", hide, "hide", *hidden, "--"]
    for library in hidden[:1]:
        size = subprocess.run([*prefix, "stat", "-L", "-c", "%s", library], check=True, capture_output=True, text=True)
        assert size.stdout.strip() == "0"
    assert_colours(run(empty_python, *photos, prefix=prefix), photos)


DIAGNOSE = """
import json, sys
from feedline.diagnose import report, verdict
from feedline.diagnose.watch import watch
from feedline.profiler.summary import timeline
for budget in (2.0, 120.0):  # a machine that others keep busy needs more
    recording = watch([sys.executable, "-c", sys.argv[1], sys.argv[2]], budget)
    if recording.experiments is not None and recording.experiments.rungs:
        break
summary = timeline.summarise(recording)
print(json.dumps(report.as_json(recording, summary, verdict.evaluate(summary))))
"""
TRAIN = """
import sys, time
import feedline
with feedline.open(sys.argv[1]).resize((8, 8)).loader(1, output="numpy", num_workers=1) as loader:
    for epoch in range(20):
        for batch in loader:
            time.sleep(0.002)
"""


def test_it_diagnoses_its_own_loader(empty_python, photos):
    """The probe is found in the installed package, in a Python without torch."""
    environment = ["env", "-i", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"]
    done = subprocess.run(
        [*environment, empty_python, "-c", DIAGNOSE, TRAIN, photos[0]], capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["exit_status"] == 0 and found["summary"]["steps"] > 0, found["notes"]
    assert found["summary"]["making"]["stages"] is not None
    assert found["experiments"]["rungs"] and found["verdicts"]


def glibc_of(tag):
    """The glibc that a tag such as cp311-cp311-manylinux_2_28_x86_64 asks for."""
    return tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", tag).groups()))


def glibc_asked(elf):
    """The versions of glibc that a shared object asks for: {(2, 17), (2, 27)}."""
    needs = elf.get_section_by_name(".gnu.version_r")
    asked = [version.name for _, versions in (needs.iter_versions() if needs else ()) for version in versions]
    return {tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in asked if name.startswith("GLIBC_2")}


@pytest.fixture(params=["this", "aarch64"])
def held(request):
    """A wheel, and the processor that it is for."""
    if request.param == "this":
        return request.getfixturevalue("wheel"), platform.machine()
    found = sorted((ROOT / "dist").glob(f"feedline-*_{request.param}.whl"))
    if not found:
        pytest.skip(f"no wheel for {request.param} in dist/: tools/wheel --arch {request.param} makes one")
    return found[-1], request.param


def test_its_shared_objects_are_the_processors_and_load_where_glibc_is_2_28(held):
    wheel, machine = held
    with zipfile.ZipFile(wheel) as archive:
        objects = {name: ELFFile(io.BytesIO(archive.read(name))) for name in archive.namelist() if ".so" in name}
    assert {elf["e_machine"] for elf in objects.values()} == {f"EM_{machine.upper()}"}
    assert [name for name, elf in objects.items() if max(glibc_asked(elf), default=(2, 0)) > (2, 28)] == []
    segments = [(name, segment) for name, elf in objects.items() for segment in elf.iter_segments("PT_LOAD")]
    assert [name for name, segment in segments if segment["p_align"] % PAGES[machine]] == []
    bundled = {Path(name).name for name in objects}
    for name, elf in objects.items():
        needs = [tag.needed for tag in elf.get_section_by_name(".dynamic").iter_tags("DT_NEEDED")]
        assert [need for need in needs if need not in bundled and not PLATFORM.fullmatch(need)] == [], name


def test_what_the_wheel_holds(held):
    wheel, machine = held
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name for name in names if name.endswith(".dist-info/WHEEL"))
        tags = email.message_from_bytes(archive.read(info)).get_all("Tag")
        metadata = email.message_from_bytes(archive.read(info.replace("WHEEL", "METADATA")))
    python_tag = "-".join(wheel.stem.split("-")[2:4])
    assert python_tag in ("cp311-cp311", "cp312-abi3")
    assert tags
    assert all(tag.startswith(f"{python_tag}-manylinux") and tag.endswith(f"_{machine}") for tag in tags), tags
    assert [tag for tag in tags if glibc_of(tag) <= (2, 28)], tags  # RHEL 8's, and that of Debian 11 and later
    for codec in BUNDLED:
        assert any(re.match(rf"feedline\.libs/{codec}\d*[-\w.]*\.so", name) for name in names), (codec, names)
        licence = any(re.search(rf"/licenses/bundled/{codec}\d*[-\w.]*\.txt$", name) for name in names)
        assert licence or not shutil.which("dpkg-query"), (codec, names)
    for static in ("libexpat", "libstdc++"):
        licence = any(f"/licenses/bundled/{static}" in name for name in names)
        assert licence or not shutil.which("dpkg-query"), (static, names)
    assert "feedline/py.typed" in names
    assert "feedline/profiler/probe/inject/sitecustomize.py" in names  # no import finds it: PYTHONPATH does
    assert "feedline/_engine.pyi" in names
    assert {name.partition("/")[0] for name in names} == {"feedline", "feedline.libs", info.partition("/")[0]}
    needs = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    assert [re.match(r"[\w-]+", text)[0] for text in needs] == NEEDS
    assert metadata["Requires-Python"] == ">=3.11"
