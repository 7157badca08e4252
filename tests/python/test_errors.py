# SPDX-License-Identifier: Apache-2.0
"""The exceptions: their bases, their attributes, and that both survive a pickle."""

from __future__ import annotations

import ast
import builtins
import copy
import errno
import pathlib
import pickle

import pytest

import feedline

PLACE = {"dataset": "d", "shard": "s.tar", "key": "k", "record": 3, "offset": 1536, "stage": "decode"}
BASES = {
    feedline.Error: Exception,
    feedline.ConfigError: ValueError,
    feedline.DataError: RuntimeError,
    feedline.StorageError: OSError,
    feedline.StalledError: TimeoutError,
    feedline.WorkerDiedError: RuntimeError,
}


@pytest.mark.parametrize(("kind", "base"), BASES.items())
def test_bases_attributes_and_pickles(kind: type[feedline.Error], base: type[Exception]) -> None:
    error = kind("it broke [key k]", **PLACE)
    assert isinstance(error, base)
    assert isinstance(error, feedline.Error)
    for other in (error, copy.copy(error), *(pickle.loads(pickle.dumps(error, p)) for p in range(2, 6))):
        assert type(other) is kind
        assert str(other) == "it broke [key k]"
        assert {name: getattr(other, name) for name in PLACE} == PLACE


def test_a_storage_error_is_an_os_error() -> None:
    error = feedline.StorageError("cannot open", errno=errno.EACCES, **PLACE)
    for other in (error, pickle.loads(pickle.dumps(error))):
        assert other.errno == errno.EACCES
        assert other.filename == "s.tar"
        assert str(other) == "cannot open"
    assert feedline.StorageError("without a number").errno is None


def test_subclasses_and_notes_survive(tmp_path: object) -> None:
    error = feedline.DataError("broken", key="k")
    error.add_note("while resuming")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while resuming"]


def test_errors_of_the_engine_pickle() -> None:
    with pytest.raises(feedline.StorageError) as caught:
        feedline.open("/does/not/exist")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.errno == errno.ENOENT
    assert str(again) == str(caught.value)
    assert "/does/not/exist" in str(again)
    assert again.__dict__ == caught.value.__dict__


# Never seen by a user: what catches each, and why it has a class.
INTERNAL = {
    "NotPlain": "the drop-in: a value of a user's class has another type than expected; the class's Python runs",
    "NoSource": "the drop-in: the source of a user's class cannot be found; it becomes a reason of explain()",
    "AlreadyWatched": "%%feedline: a cell says it in words",
    "NotMeasured": "a probe of bench --machine; told as a reason",
    "Refused": "tune: a setting cannot be measured; it becomes a rung's reason",
    "Lost": "tune: the copy of the script died; it becomes a note",
    "NotTried": "diagnose: an experiment is not made; it becomes a line of the report",
    "CommandError": "diagnose and tune: a command cannot be started; it becomes exit status 2",
    "StockLoaderMissing": "bench: torch is not there; it becomes a line of the report",
    "Late": "the drop-in: a native batch is late; it becomes a StalledError or torch's RuntimeError",
    "NotShareable": "the drop-in: a loader cannot use a pool's processes; it becomes a warning in the log",
    "RemoteTraceback": "the drop-in: the cause of a worker's exception, only ever shown",
    "BadField": "map: a function cannot use a field of a sample; it becomes the sample's error",
    "Unsuitable": "tokenize: a conversation cannot be tokenised; it becomes the sample's error",
    "UnusableFunction": "map: a function cannot run for any sample; it becomes a ConfigError",
    "NotStarted": "map: a worker process ended at the main script; it becomes a ConfigError",
    "Stopped": "stage: another copy failed; it ends this one without a word",
    "BrokenPromise": "demo: a resumed run gave other batches; it becomes exit status 1",
    "BadSamplesError": "the drop-in: carries an epoch's bad samples from fetching to delivery",
}


def _exception_classes() -> dict[str, str]:
    """Every exception and warning that the package defines, by name, with the file."""
    root = pathlib.Path(feedline.__file__).parent
    found: dict[str, str] = {}
    bases = {
        name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
    }
    classes = [
        (node, path.relative_to(root).as_posix())
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    before = -1
    while before != len(found):  # a class of a class
        before = len(found)
        for node, name in classes:
            if any(ast.unparse(base).rpartition(".")[2] in bases | set(found) for base in node.bases):
                found[node.name] = name
    return found


def test_users_can_import_every_exception_and_warning_that_they_meet() -> None:
    found = {name: path for name, path in _exception_classes().items() if not name.startswith("_")}
    assert {"Error", "RecordError", "SettingsWarning", "WorkerDiedError"} <= set(found)
    assert set(INTERNAL) <= set(found), "a class that is gone needs no excuse"
    for name in found.keys() - INTERNAL.keys():
        assert name in feedline.__all__, f"{name} of {found[name]} cannot be imported from feedline"
        assert issubclass(getattr(feedline, name), (feedline.Error, Warning))
    for name in INTERNAL:
        assert name not in feedline.__all__
        assert not found[name].startswith("errors")


def test_the_places_where_they_were_first_still_have_them() -> None:
    from feedline import record
    from feedline.tune import settings

    assert record.RecordError is feedline.RecordError
    assert settings.SettingsWarning is feedline.SettingsWarning
    assert settings.load_settings is feedline.load_settings
