# SPDX-License-Identifier: Apache-2.0
"""The Python of README.md and docs/ runs as it stands, and its commands are ones that the command line takes."""

from __future__ import annotations

import inspect
import os
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import made_annotations
import made_data
import numpy as np
import pytest
from fields import made_fields
from running_processes import HANG_S

import feedline

pytest.importorskip("torch", reason="torch, which the documents use, is not installed")

from run_document import runnable

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
DOCUMENTS += sorted((CHECKOUT / "docs" / "tutorials").glob("*.md"))
DOCUMENTS += sorted((CHECKOUT / "docs" / "reference").glob("*.md"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the documents open, small: imagenet/train, photos, shards, scenes, train.bin, train.lines."""
    root = tmp_path_factory.mktemp("documents")
    made_data.make_folder(root / "imagenet" / "train", per_class=100)
    (root / "photos").symlink_to("imagenet/train")
    (root / "shards").mkdir()
    for i in range(147):
        files = made_fields.sample(i)
        labels = np.arange(i % 4)  # one for each of the boxes
        members = {"jpg": files["left.jpg"], **files, "labels.npy": made_fields.npy(labels)}
        made_data.write_tar(
            root / "shards" / f"{i:03d}.tar", [(f"{i:06d}.{name}", data) for name, data in members.items()]
        )
        for folder, name in (("images", "left.jpg"), ("masks", "mask.png")):
            path = root / "scenes" / folder / f"{i:06d}.{name.partition('.')[2]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
    made_annotations.coco(root / "coco")
    tokens = np.random.default_rng(0).integers(0, 50_256, 60_000).astype("<u2")
    tokens[::700] = 50_256  # ends a document
    tokens.tofile(root / "train.bin")
    (root / "train.lines").write_text("one\ntwo\n")
    return root


@pytest.fixture(scope="module")
def run_document(data: Path) -> Iterator[Callable[[Path], tuple[int, str]]]:
    """Runs a document in a process forked from one that has imported torch; returns its exit status and output."""
    paths = [str(Path(feedline.__file__).parents[1]), str(Path(__file__).parent)]
    command = [sys.executable, str(Path(__file__).with_name("run_document.py"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(
        command, cwd=data, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def run(document: Path) -> tuple[int, str]:
            output = data / f"{document.stem}.output"
            process.stdin.write(f"{document}\t{output}\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], HANG_S)[0], f"{document.name} does not end"
            return int(process.stdout.readline()), output.read_text()

        try:
            yield run
        finally:
            process.stdin.close()
            try:
                process.wait(HANG_S)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if runnable(d)], ids=lambda path: path.name)
def test_the_python_of_a_document_runs(document: Path, run_document: Callable[[Path], tuple[int, str]]) -> None:
    status, output = run_document(document)
    assert status == 0, output


LINKS = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings_that_are_there(document: Path) -> None:
    for name, heading in LINKS.findall(re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)):
        target = (document.parent / name) if name else document
        assert target.exists(), f"{document.name}: {name}"
        if heading and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
            assert heading in anchors, f"{document.name}: {name}#{heading}"


def test_the_readmes_picture_is_drawn_from_the_record() -> None:
    script = CHECKOUT / "tools" / "readme_picture.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], timeout=HANG_S)
    assert checked.returncode == 0, "run tools/readme_picture.py"


def public_classes() -> list[tuple[str, type]]:
    found = [(name, getattr(feedline, name)) for name in [*feedline.__all__, "DataLoader"]]
    return [(name, value) for name, value in found if isinstance(value, type)]


def test_every_public_name_is_on_the_reference_page() -> None:
    page = (CHECKOUT / "docs" / "reference" / "python.md").read_text()
    shown = set(re.findall(r"^::: feedline\.(\w+)$", page, re.MULTILINE)) | set(re.findall(r"`feedline\.(\w+)`", page))
    assert shown == {*feedline.__all__, "DataLoader", "StatefulDataLoader", "WorkerPool"}


def test_every_public_name_has_words_of_its_own() -> None:
    """Classes and functions, and what a class of ours has besides: methods and properties."""
    names = {name: getattr(feedline, name) for name in [*feedline.__all__, "DataLoader"]}
    silent = [name for name, value in names.items() if callable(value) and not (value.__doc__ or "").strip()]
    for name, value in public_classes():
        for base in (base for base in value.__mro__ if base.__module__.startswith("feedline")):
            members = {member: of for member, of in vars(base).items() if not member.startswith("_")}
            silent += [
                f"{name}.{member}"
                for member, of in members.items()
                if (callable(of) or isinstance(of, property)) and not (getattr(of, "__doc__", "") or "").strip()
            ]
    assert not silent


def test_signatures_on_the_reference_page_have_public_names_only() -> None:
    functions = {name: getattr(feedline, name) for name in [*feedline.__all__, "DataLoader"]}
    for name, value in public_classes():
        members = {member: of for member, of in inspect.getmembers(value) if not member.startswith("_")}
        functions |= {f"{name}.{member}": of for member, of in members.items()}
    private = {}
    for name, value in functions.items():
        if inspect.isfunction(value) or inspect.isclass(value):
            try:
                signature = str(inspect.signature(value))
            except ValueError:  # a class of the engine
                continue
            private[name] = re.findall(r"(?<![\w.])_\w+", signature.replace("_engine.", ""))
    assert {name: found for name, found in private.items() if found} == {}


def test_every_document_is_in_the_sites_navigation() -> None:
    navigation = (CHECKOUT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    listed = set(re.findall(r"\S+\.md", navigation))
    documents = {str(path.relative_to(CHECKOUT)) for path in DOCUMENTS}
    made_by_the_site = "docs/causes.md"
    assert listed == {*documents, made_by_the_site, "src/README.md", "docs/decisions/README.md"}


# words that people search for, and the page that has to contain them
SEARCHED = {
    "DataFrame": "tutorials/custom-dataset.md",
    "Parquet from S3": "tutorials/remote-shards.md",
    "Too many open files": "symptoms.md",
    "WeightedRandomSampler": "sampling.md",
    "class imbalance": "sampling.md",
    "custom dataset": "tutorials/custom-dataset.md",
    "k-fold": "sampling.md",
    "medical images": "tutorials/medical-images.md",
    "multi-label": "tutorials/custom-dataset.md",
    "my own operation": "tutorials/own-operation.md",
    "unable to mmap": "symptoms.md",
}


@pytest.mark.parametrize("searched", SEARCHED)
def test_a_search_finds_the_page(searched: str) -> None:
    assert searched.lower() in (CHECKOUT / "docs" / SEARCHED[searched]).read_text().lower()


COMMANDS = [
    pytest.param(line, id=f"{document.name}: {line[:60]}")
    for document in DOCUMENTS
    for block in re.findall(r"^```\w*\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
    for line in re.findall(r"^(?:\$ )?(feedline [a-z]+ .+)$", block, re.MULTILINE)
]


def words(line: str) -> list[str]:
    """Of a line of a document: without what is said beside the command, and with all that may be there."""
    command = re.split(r"\s{2,}|\s#", line)[0]
    return shlex.split(command.replace("[", "").replace("]", "").replace("...", "more"))[1:]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_documents_is_taken(line: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    click = pytest.importorskip("click", reason="the command line is not installed")
    from feedline.cli.root import root

    monkeypatch.chdir(data)
    verb, *given = words(line)
    names = {"FOLDER": ".", "FILE": "run.json", "PID": "1"}
    arguments = [names.get(word, word) for word in given]
    with root.make_context("feedline", [verb, *arguments]) as context:
        command = root.commands[verb]
        assert isinstance(command.make_context(verb, arguments, parent=context), click.Context)
