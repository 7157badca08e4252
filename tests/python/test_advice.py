# SPDX-License-Identifier: Apache-2.0
"""All advice in messages exists and works: each name, argument, method and command line in each sentence."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch, whose loader the advice is for, is not installed")
feedline = pytest.importorskip("feedline")
cli = import_module("feedline.cli.root")

PACKAGE = Path(feedline.__file__).parent
# Modules with advice; test_nobody_else_advises_what_is_checked_here finds sentences in other modules.
ADVISERS = (
    "diagnose/verdict.py",
    "diagnose/gpu_text.py",
    "diagnose/more_workers.py",
    "diagnose/report.py",
    "diagnose/trial.py",
    "profiler/model/what_if.py",
    "profiler/summary/timeline.py",
    "profiler/summary/gpu_summary.py",
    "data/inspect/inspection.py",
    "report/effects.py",
    *(
        str(path.relative_to(PACKAGE))
        for folder in ("diagnose/causes", "diagnose/judging", "trace", "top", "tune")
        for path in (PACKAGE / folder).rglob("*.py")
    ),
    "report/page.py",
)


def sentences(path):
    """Returns all texts of a module that contain a space, with {} for the values of f-strings, except for
    docstrings.
    """
    tree, inside = ast.parse(path.read_text()), set()
    documented = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef)]
    inside |= {id(n.body[0].value) for n in documented if n.body and isinstance(n.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(value) for value in node.values}
            yield "".join(value.value if isinstance(value, ast.Constant) else "{}" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def advice():
    for name in ADVISERS:
        for text in sentences(PACKAGE / name):
            if " " in text:
                yield name, text


ADVICE = sorted(set(advice()))
IMAGES = np.zeros((8, 4, 4, 3), np.uint8)


def pictures(folder):
    from PIL import Image

    for number in range(4):
        path = folder / f"kind{number % 2}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(IMAGES[number]).save(path)
    return feedline.open(folder).resize((4, 4))


def torch_loader(**arguments):
    return torch.utils.data.DataLoader(torch.arange(8), **arguments)


def drop_in(**arguments):
    return feedline.DataLoader(torch.arange(8), **arguments)


def own(folder, **arguments):
    return pictures(folder).loader(2, **arguments)


# Each argument that is recommended, in a call for which it is recommended. All of these calls are made.
ARGUMENTS = {
    "num_workers": lambda folder: (
        torch_loader(num_workers=2),
        drop_in(num_workers="auto"),
        own(folder, num_workers=2),
    ),
    "prefetch_factor": lambda _: (torch_loader(num_workers=1, prefetch_factor=2),),
    "persistent_workers": lambda _: (torch_loader(num_workers=1, persistent_workers=True),),
    "prefetch_epochs": lambda _: (drop_in(num_workers=1, prefetch_epochs=True, persistent_workers=True),),
    "in_order": lambda folder: (torch_loader(in_order=False), drop_in(in_order=False), own(folder, in_order=False)),
    "pin_memory": lambda _: (torch_loader(pin_memory=True), drop_in(pin_memory=True)),
    "non_blocking": lambda _: (torch.zeros(2).to("cpu", non_blocking=True),),
    "dtype": lambda folder: (own(folder, dtype="uint8"),),
    "epochs": lambda folder: (own(folder, epochs=2),),
    "on_error": lambda folder: (own(folder, on_error="skip"), drop_in(on_error="skip")),
    "memory_budget": lambda folder: (own(folder, memory_budget="1 GiB"),),
    "fidelity": lambda folder: (feedline.open(pictures(folder) and folder).decode(fidelity="fast"),),
    "buckets": lambda _: (feedline.Dataset.loader.__annotations__["buckets"],),  # of ragged values alone
    "activities": lambda _: (torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),),
    "with_stack": lambda _: (torch.profiler.profile(with_stack=True),),
    "profile_memory": lambda _: (torch.profiler.profile(profile_memory=True),),
    "fields": lambda _: (inspect.signature(feedline.open).parameters["fields"],),  # of tars alone
    "images": lambda _: (inspect.signature(feedline.open).parameters["images"],),  # of COCO's files alone
    "batch_size": lambda _: (torch_loader(batch_size=4),),
    "cache": lambda _: (inspect.signature(feedline.open).parameters["cache"],),
    "shuffle": lambda folder: (own(folder, shuffle="shards"),),
    "for_": lambda _: (
        inspect.signature(feedline.load_settings).parameters["for_"],
    ),  # its values: test_tune_settings.py
}
NO_ADVICE = {"width", "scale", "ptrace_scope"}  # HTML attributes; a kernel setting
METHODS = {
    "cache": (feedline.Dataset,),
    "decode": (feedline.Dataset,),
    "loader": (feedline.Dataset,),
    **dict.fromkeys(("item", "nonzero", "tolist", "to", "detach", "pin_memory"), (torch.Tensor,)),
}
ELSEWHERE = {  # docker's; tar's
    "--shm-size",
    *("--concatenate", "--dereference", "--hard-dereference", "--sort", "--sparse"),
}


def every(pattern):
    return sorted({found for _, text in ADVICE for found in re.findall(pattern, text)})


def test_there_is_advice_of_every_verb():
    folders = {name.split("/")[0] for name, text in ADVICE if re.search(r"feedline|=|--|\.[a-z_]+\(", text)}
    assert {"diagnose", "trace", "top", "tune"} <= folders


@pytest.mark.parametrize("name", every(r"\bfeedline(?:\.\w+)+"))
def test_what_is_called_by_its_name_is_there_after_import_feedline(name):
    found = feedline
    for part in name.split(".")[1:]:
        found = getattr(found, part)


@pytest.mark.parametrize("name", every(r"\b(?:torch|gc)(?:\.\w+)+"))
def test_what_is_called_by_its_name_elsewhere_is_there(name):
    found = import_module(name.split(".")[0])
    for part in name.split(".")[1:]:
        found = getattr(found, part)


@pytest.mark.parametrize("name", sorted(set(every(r"(?<![\w-])([a-z_]{3,})=(?=[\w\"'\[{.])")) - NO_ADVICE))
def test_every_argument_is_taken_by_the_calls_that_it_is_advised_for(name, tmp_path):
    assert name in ARGUMENTS, f"{name}= is advised: say in ARGUMENTS which calls take it"
    for made in ARGUMENTS[name](tmp_path):
        if hasattr(made, "close"):
            made.close()


@pytest.mark.parametrize("name", every(r"(?<=[\s`(.\"'])\.([a-z_]+)\((?!\))|(?<=[\s`(\"'])\.([a-z_]+)\("))
def test_every_method_is_there(name):
    (method,) = (part for part in name if part)
    assert method in METHODS, f".{method}() is advised: say in METHODS whose it is"
    assert all(callable(getattr(kind, method)) for kind in METHODS[method])


@pytest.mark.parametrize(
    "line", every(r"(?:`|\b)feedline ((?:" + "|".join(sorted(cli.root.commands)) + r")\b(?: --?[a-z][\w-]*)*)")
)
def test_every_command_line_names_a_verb_and_its_options(line):
    verb, *options = line.split()
    known = {option for parameter in cli.root.commands[verb].params for option in parameter.opts}
    assert {option for option in options if option != "--"} <= known


def test_no_verb_is_advised_that_is_none():
    said = set(every(r"`feedline ([a-z]+)|(?:run|ask|or) feedline ([a-z]+)\b"))
    assert {word for words in said for word in words if word} <= {*cli.root.commands, "import"}


@pytest.mark.parametrize("option", sorted(set(every(r"(?<![\w-])--[a-z][a-z-]+")) - ELSEWHERE))
def test_every_option_belongs_to_a_verb(option):
    known = {opt for command in cli.root.commands.values() for parameter in command.params for opt in parameter.opts}
    assert option in known


def test_no_argument_is_advised_that_a_loader_refuses(tmp_path):
    """device= of Feedline's own loader, which supports only CUDA."""
    with pytest.raises(feedline.ConfigError, match="must be the CPU or a CUDA device, not 'mps'"):
        own(tmp_path, device="mps")
    assert not [text for _, text in ADVICE if re.search(r"\bdevice=.?(?!cuda|cpu|torch)[a-z]", text)]


def test_pack_takes_the_arguments_that_are_advised(tmp_path):
    (tmp_path / "in").mkdir(), (tmp_path / "out").mkdir()
    pictures(tmp_path / "in")
    assert cli.run(["pack", str(tmp_path / "in"), str(tmp_path / "out" / "{:06d}.tar")]) == 0
    assert cli.run(["pack", str(tmp_path / "in"), str(tmp_path / "out" / "raw.pixels"), "--raw", "4"]) == 0


def test_feedline_trace_record_is_there_without_another_import():
    assert callable(feedline.trace.record)
