# SPDX-License-Identifier: Apache-2.0
"""Implements tools/gpu_check. Imports only Python's standard library, because it installs the other packages."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/gpu_check"
WHEEL = "feedline-*-cp312-abi3-*.whl"
MOST_BYTES = 60 << 20  # size of the checkout and the wheels together
# import name: the package that provides it, in the version of tools/requirements/test.txt; nvJPEG is for
# decode(device="cuda")
NEEDS = {
    "numpy": "numpy==2.4.6",
    "pytest": "pytest==9.2.0",
    "hypothesis": "hypothesis==6.170.15",
    "PIL": "pillow==13.0.0",
    "click": "click==8.5.1",
    "rich": "rich==15.0.0",
    "fastjsonschema": "fastjsonschema==2.22.3",
    "nvidia.nvjpeg": "nvidia-nvjpeg-cu12==12.4.0.76",
}
CONTRACT = "feedline_device_tests"  # the engine's own device tests, as created by the build
STEPS = ("facts", "tests", "contract", "sanitizer", "bench", "causes", "figures", "ladder", "before_and_after")
CAUSES = ("unpinned_copy", "blocking_copy", "host_to_device", "precision_not_reduced")
FACTS = """
import json, torch
ready = torch.cuda.is_available()
count = torch.cuda.device_count() if ready else 0
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda, "usable": ready,
    "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
    "capabilities": [torch.cuda.get_device_capability(i) for i in range(count)],
}))
"""


@dataclass
class Step:
    status: str  # "passed", "failed", "not run"
    why: str = ""  # why it failed or was not run
    seconds: float = 0.0
    found: dict[str, Any] = field(default_factory=dict)
    output: str = ""  # the end of the output


def is_here(name: str) -> bool:
    """Whether the module can be imported; also works if its parent package cannot be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class Missing(Exception):
    """The machine lacks something that a step requires; the message names it."""


class Check:
    """One run, in an environment that extends that of the machine."""

    def __init__(self, wheels: Path) -> None:
        self._wheels = wheels
        self._bin = FOLDER / "venv/bin"
        self._facts: dict[str, Any] | None = None

    def install(self) -> None:
        """Creates the environment with the machine's torch, Feedline's wheel, and missing packages."""
        wheel = next(iter(sorted(self._wheels.glob(WHEEL))), None)
        if wheel is None:
            raise Missing(f"no abi3 wheel in {self._wheels}: run tools/wheel and tools/gpu_check --pack")
        if importlib.util.find_spec("torch") is None:
            raise Missing(f"torch is not installed for {sys.executable}")
        shutil.rmtree(FOLDER / "venv", ignore_errors=True)
        self._must(
            [sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(FOLDER / "venv")],
            "a virtual environment",
        )
        self._see_packages_of_this_python()
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self._bin / "python"),
            "install",
            "--quiet",
            "--no-index",
            "--find-links",
            str(self._wheels),
        ]
        self._must([*pip, "--no-deps", "--force-reinstall", str(wheel)], "the wheel")
        lacking = [needed for name, needed in NEEDS.items() if not is_here(name)]
        if lacking:
            self._must([*pip, *lacking], f"{', '.join(lacking)} (tools/gpu_check --pack puts them into {self._wheels})")

    def _see_packages_of_this_python(self) -> None:
        """Makes a torch in another virtual environment importable, which system-site-packages does not include."""
        own = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        for packages in (FOLDER / "venv").glob("lib/python*/site-packages"):
            (packages / "of_the_machine.pth").write_text("".join(f"{path}\n" for path in own))

    def facts(self) -> Step:
        done = self._run([self._python, "-c", FACTS], 120)
        if done.returncode:
            raise Missing(f"importing torch failed: {done.stderr.strip().splitlines()[-1:]}")
        self._facts = json.loads(done.stdout)
        smi = shutil.which("nvidia-smi")
        driver = self._run([smi, "--query-gpu=name,driver_version", "--format=csv,noheader"], 60).stdout if smi else ""
        return Step("passed", found={**self._facts, "nvidia_smi": driver.strip().splitlines()})

    def tests(self) -> Step:
        self._gpu()
        report = FOLDER / "tests.xml"
        done = self._run(
            [
                self._python,
                "-m",
                "pytest",
                "-q",
                "-m",
                "gpu",
                "-p",
                "no:cacheprovider",
                f"--junitxml={report}",
                *labelled(),
            ],
            420,
        )
        step = self._of(done, {"files": labelled(), **counts(report)})
        if step.status == "passed" and not step.found["passed"]:
            return replace(step, status="failed", why="every test was skipped, although there is a GPU")
        return step

    def contract(self) -> Step:
        """Runs the engine's own tests of all devices on the first GPU."""
        self._gpu()
        program = self._wheels / CONTRACT
        if not program.is_file():
            raise Missing(f"{CONTRACT} is not in {self._wheels}: run tools/check --build release and gpu_check --pack")
        program.chmod(0o755)
        done = self._run(["env", "FEEDLINE_REAL_CUDA=1", str(program), "--gtest_filter=Cuda/DeviceContract.*"], 120)
        step = self._of(done, {"passed": done.stdout.count("[       OK ]")})
        if step.status == "passed" and not step.found["passed"]:
            return replace(step, status="failed", why="no test ran")
        return step

    def sanitizer(self) -> Step:
        self._gpu()
        tool = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
        if tool is None:
            raise Missing("compute-sanitizer is not on PATH: it comes with the CUDA toolkit")
        test = "tests/python/test_kernels_on_a_gpu.py"
        words = [tool, "--error-exitcode", "9", "--target-processes", "all", self._python, "-m", "pytest", "-q", test]
        return self._of(self._run(words, 300), {})

    def bench(self) -> Step:
        self._gpu()
        done = self._run([str(self._bin / "feedline"), "bench", "--device", "--seconds", "20", "--json"], 240)
        return self._of(done, {"record": json.loads(done.stdout)} if done.returncode == 0 else {})

    def causes(self) -> Step:
        self._gpu()
        found: dict[str, Any] = {}
        for name in (*CAUSES, "sound"):
            script = ROOT / f"tests/scenarios/gpu/{name}.py"
            words = [str(self._bin / "feedline"), "diagnose", "--quick", "--json", "--", self._python, str(script)]
            done = self._run(words, 180)
            named = named_causes(done.stdout)
            right = named is not None and (name in named if name in CAUSES else not set(CAUSES) & set(named))
            found[name] = {"named": named, "right": right, "end": "" if right else done.stderr[-2000:]}
        wrong = [name for name, one in found.items() if not one["right"]]
        return Step(
            "failed" if wrong else "passed", f"wrong causes in: {', '.join(wrong)}" if wrong else "", found=found
        )

    def figures(self) -> Step:
        self._gpu()
        done = self._run([self._python, str(ROOT / "tools/gpu_figures.py")], 300)
        return self._of(done, {"record": json.loads(done.stdout)} if done.stdout.startswith("{") else {})

    def ladder(self) -> Step:
        """Runs `feedline tune --ladder` on a script that trains with torch's loader."""
        self._gpu()
        script = ROOT / "tests/scenarios/gpu/stock_training.py"
        feedline = str(self._bin / "feedline")
        done = self._run(
            [feedline, "tune", "--ladder", "--budget", "5m", "--json", "--", self._python, str(script)], 540
        )
        found = rungs_of(done.stdout)
        step = self._of(done, {"rungs": found})
        lacking = [what for what, is_there in measured_by_ladder(found).items() if not is_there]
        if step.status == "passed" and lacking:
            return replace(step, status="failed", why=f"not measured: {', '.join(lacking)}")
        return step

    def before_and_after(self) -> Step:
        self._gpu()
        script = ROOT / "examples/before_and_after/before_and_after.py"
        done = self._run([self._python, str(script), "--made", "2000"], 300)
        step = self._of(done, {"record": json.loads(done.stdout)} if done.stdout.startswith("{") else {})
        if step.status == "passed" and step.found["record"]["is_stand_in"]:
            return replace(step, status="failed", why="the step was a stand-in, although there is a GPU")
        return step

    @property
    def _python(self) -> str:
        return str(self._bin / "python")

    def _gpu(self) -> None:
        if self._facts is None:
            self.facts()
        if not (self._facts or {}).get("usable"):
            raise Missing("torch cannot use a GPU on this machine")

    def _run(self, words: list[str], limit_s: float) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                words, capture_output=True, text=True, timeout=limit_s, cwd=ROOT, env=environment(self._bin)
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, "", f"not finished after {limit_s:.0f} s")

    def _of(self, done: subprocess.CompletedProcess[str], found: dict[str, Any]) -> Step:
        why = f"exit status {done.returncode}" if done.returncode else ""
        end = (done.stdout if not found.get("record") else "")[-4000:] + done.stderr[-4000:]
        return Step("failed" if why else "passed", why, found=found, output=end)

    def _must(self, words: list[str], what: str) -> None:
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"{what} could not be installed: {done.stderr.strip()[-500:]}")


def environment(programs: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"}


def labelled() -> list[str]:
    """Returns the files with tests labelled `gpu`, because other tests may need packages that this machine lacks."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "pytest.mark.gpu" in path.read_text()]


def counts(report: Path) -> dict[str, int]:
    """Returns the tests that passed and those that were skipped, from pytest's report; none if there is no report."""
    try:
        suite = next(ElementTree.parse(report).iter("testsuite"))
    except (OSError, ElementTree.ParseError, StopIteration):
        return {"passed": 0, "skipped": 0}
    every, *less = (int(suite.get(name, 0)) for name in ("tests", "skipped", "failures", "errors"))
    return {"passed": every - sum(less), "skipped": less[0]}


def rungs_of(text: str) -> list[dict[str, Any]]:
    """Returns the measured rungs of a ladder from its JSON object."""
    try:
        rungs = json.loads(text)["rungs"]
    except (ValueError, KeyError):
        return []
    figures = ("change", "kept", "why", "wait_share", "gpu", "expected", "comparison")
    return [{name: rung[name] for name in figures} for rung in rungs]


def measured_by_ladder(rungs: list[dict[str, Any]]) -> dict[str, bool]:
    """Returns whether a ladder has the measurements that need a GPU."""
    compared = [rung["change"] for rung in rungs if rung["comparison"] is not None]
    return {
        "more workers": any("worker" in change for change in compared),
        "page-locked memory": any("pinned" in change for change in compared),
        "a larger batch": any(change.startswith("batches of") for change in compared),
        "the GPU's utilization": any(rung["gpu"] is not None for rung in rungs),
    }


def named_causes(text: str) -> list[str] | None:
    """Returns the diagnosis at the end of the output; None if there is none."""
    begin = text.find("\n{\n") + 1 if not text.startswith("{\n") else 0
    try:
        return [verdict["cause"] for verdict in json.loads(text[begin:])["verdicts"]]
    except (ValueError, KeyError, TypeError):
        return None


def run(check: Check, only: list[str], note: Callable[[dict[str, Any]], None] = lambda results: None) -> dict[str, Any]:
    """Returns the results of the steps, in their order. A step that cannot run does not prevent others.

    note: receives the results so far after each step, because the machine may become unavailable.
    """
    steps: dict[str, Step] = {}
    lacking = ""
    results: dict[str, Any] = {}
    try:
        check.install()
    except Missing as missing:
        lacking = str(missing)
    for name in only:
        print(f"== {name} ... ", end="", flush=True)
        begin = time.monotonic()
        step = Step("not run", lacking)
        if not lacking:
            todo: Callable[[], Step] = getattr(check, name)
            try:
                step = todo()
            except Missing as missing:
                step = Step("not run", str(missing))
        step.seconds = round(time.monotonic() - begin, 1)
        steps[name] = step
        print(f"{step.status}{': ' * bool(step.why)}{step.why}", flush=True)
        results = results_of(steps)
        note(results)
    return results


def results_of(steps: dict[str, Step]) -> dict[str, Any]:
    return {
        "gpu_check": 1,
        "machine": {"python": platform.python_version(), "system": platform.platform()},
        "missing": sorted({step.why for step in steps.values() if step.status == "not run"}),
        "steps": {name: asdict(step) for name, step in steps.items()},
    }


def exit_status(results: dict[str, Any]) -> int:
    statuses = {step["status"] for step in results["steps"].values()}
    return 1 if "failed" in statuses else 3 if "not run" in statuses else 0


def pack(wheels: Path) -> None:
    """Writes the wheel and the packages that tests need to `wheels`."""
    found = sorted((ROOT / "dist").glob(WHEEL))
    if not found:
        raise SystemExit("gpu_check: no abi3 wheel in dist/: run tools/wheel with Python 3.12 or later on PATH")
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    shutil.copy(found[-1], wheels)
    if (ROOT / "build/release_tests" / CONTRACT).is_file():
        shutil.copy(ROOT / "build/release_tests" / CONTRACT, wheels)
    print(f"downloading into {wheels.relative_to(ROOT)}: {' '.join(NEEDS.values())}")
    words = ["download", "--quiet", "--only-binary", ":all:", "--python-version", "3.12", "--implementation", "cp"]
    platforms = [f"manylinux{age}_{platform.machine()}" for age in ("2014", "_2_17", "_2_28")]
    words += [word for name in platforms for word in ("--platform", name)]
    subprocess.run([sys.executable, "-m", "pip", *words, "-d", str(wheels), *NEEDS.values()], check=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tree = sum((ROOT / name).stat().st_size for name in listed.split("\0") if name and (ROOT / name).is_file())
    carried = sum(path.stat().st_size for path in wheels.iterdir())
    print(f"the checkout has {tree / 2**20:.1f} MiB, the wheels {carried / 2**20:.1f} MiB")
    if tree + carried > MOST_BYTES:
        raise SystemExit(f"gpu_check: together they exceed {MOST_BYTES >> 20} MiB")


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpu_check", description="Tests that need a GPU: see tools/gpu_check --help.")
    parser.add_argument("--pack", action="store_true")
    parser.add_argument("--json", type=Path, default=FOLDER / "results.json", metavar="FILE")
    parser.add_argument("--wheels", type=Path, default=FOLDER / "wheels", metavar="DIR")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP")
    options = parser.parse_args()
    if options.pack:
        pack(options.wheels)
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    results = run(
        Check(options.wheels.resolve()),
        options.only,
        lambda so_far: options.json.write_text(json.dumps(so_far, indent=1) + "\n") and None,
    )
    print(f"results: {options.json}")
    return exit_status(results)


if __name__ == "__main__":
    sys.exit(main())
