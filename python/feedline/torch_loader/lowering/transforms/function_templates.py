# SPDX-License-Identifier: Apache-2.0
"""Recognises users' functions by comparing their bytecode with the bytecode of template functions."""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import inspect
import itertools
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SET_UP = ("RESUME", "COPY_FREE_VARS", "PUSH_NULL", "CACHE")  # instructions that depend on how names are bound
_NOT_PLAIN = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
_NAMES = ("LOAD_GLOBAL", "LOAD_DEREF")
_MEMBERS = ("LOAD_ATTR", "LOAD_METHOD")
_LOCALS = ("LOAD_FAST", "STORE_FAST", "LOAD_FAST_AND_CLEAR", "LOAD_FAST_CHECK")
_CONSTANTS = ("LOAD_CONST", "RETURN_CONST")
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_MOST_VARIABLES = 1000  # per function: nested functions continue from there
_OF_LOCALS = re.compile("(?:(?:^|_)(?:LOAD|STORE)_FAST(?:_BORROW)?)+")


@dataclass(frozen=True)
class _Named:
    """The value to which a name refers in a function."""

    value: Any


@dataclass(frozen=True)
class Read:
    """The instructions of a function with one unbound argument.

    Attributes:
        name: the function's name, or the class name of a callable object.
    """

    name: str
    instructions: tuple[Any, ...]

    def value(self, template: types.FunctionType, marker: Any) -> Any:
        """Returns the value that the function has at the position of `marker` in `template`; None if the function does
        not match the template.
        """
        found = self.values(template, (marker,))
        return None if found is None else found[0]

    def values(self, template: types.FunctionType, markers: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Returns the values that the function has at the positions of `markers` in `template`; None if the function
        does not match the template.
        """
        found = self.values_and_words(template, markers, ())
        return None if found is None else found[0]

    def values_and_words(
        self, template: types.FunctionType, markers: tuple[Any, ...], words: tuple[str, ...]
    ) -> tuple[tuple[Any, ...], dict[str, str]] | None:
        """Returns values(), and the text that the function has in place of each of the template's `words`. A word must
        have the same text at all its positions.
        """
        wanted = _of_template(template)
        if len(self.instructions) != len(wanted):
            return None
        values: dict[int, Any] = {}
        found: dict[str, str] = {}
        for ours, theirs in zip(self.instructions, wanted, strict=True):
            if isinstance(theirs, _Named) != isinstance(ours, _Named):
                return None
            if not isinstance(theirs, _Named):
                if theirs != ours and not _is_worded(theirs, ours, words, found):
                    return None
            elif any(theirs.value is marker for marker in markers):
                values[id(theirs.value)] = ours.value
            elif theirs.value is not ours.value:
                return None
        return tuple(values.get(id(marker)) for marker in markers), found


def _is_worded(theirs: Any, ours: Any, words: tuple[str, ...], found: dict[str, str]) -> bool:
    """Returns whether a template's constant matches the function's, given the replacements of its `words` in `found`.
    Adds new replacements to `found`.
    """
    if theirs[:2] != ours[:2] or theirs[0] not in _CONSTANTS:
        return False
    pairs = zip(theirs[2], ours[2], strict=False) if theirs[1] is tuple else [(theirs[2], ours[2])]
    if theirs[1] is tuple and len(theirs[2]) != len(ours[2]):
        return False
    return all(
        type(ours) is str and found.setdefault(theirs, ours) == ours if theirs in words else theirs == ours
        for theirs, ours in pairs
    )


def read(called: Any) -> Read | None:
    """Reads the instructions of a function, a functools.partial of a function, a method, or an object with a __call__
    method.

    Returns None for other objects, and if more than one argument is unbound or a name is undefined.
    """
    args: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    if type(called) is functools.partial:
        called, args, keywords = called.func, called.args, called.keywords
    function, owner = called, None
    if type(called) is types.MethodType:
        function, owner = called.__func__, called.__self__
    elif type(called) is not types.FunctionType:
        function, owner = getattr(type(called), "__call__", None), called  # noqa: B004  # what is called is wanted
    if type(function) is not types.FunctionType or not _keeps_plainly(owner):
        return None
    given = _given_arguments(function, args if owner is None else (owner, *args), keywords)
    if given is None:
        return None
    try:
        instructions = _instructions(function, given, owner)
    except (NameError, ValueError, AttributeError, TypeError):  # an undefined name
        return None
    return Read(function.__name__ if function is called else type(owner).__name__, instructions)


def _keeps_plainly(owner: Any) -> bool:
    """Returns whether an object uses the default attribute access."""
    found: Any = type(owner).__getattribute__
    return owner is None or found is object.__getattribute__


def _given_arguments(
    function: types.FunctionType, args: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the values of all arguments except the one that follows `args`; None if other arguments are unbound."""
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _NOT_PLAIN or code.co_posonlyargcount or len(args) >= len(positional):
        return None
    open_one = positional[len(args)]
    given = dict(zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False))
    given |= function.__kwdefaults__ or {}
    given |= dict(zip(positional, args, strict=False)) | keywords
    if open_one not in keywords:
        given.pop(open_one, None)  # its default is not used
    return given if given.keys() == set(names) - {open_one} else None


@functools.cache
def _of_template(template: types.FunctionType) -> tuple[Any, ...]:
    return _instructions(template, {}, None)


def _without_brief_names(instructions: list[Any]) -> list[Any]:
    """Removes variables that are assigned, read once immediately afterwards, and never used again."""
    kept: list[Any] = []
    uses = collections.Counter(one for one in map(_variable, instructions) if one is not None)
    for one in instructions:
        name = _variable(one)
        is_read = name is not None and one[0] == "LOAD_FAST" and uses[name] == 2
        if is_read and kept and _variable(kept[-1]) == name and kept[-1][0] == "STORE_FAST":
            kept.pop()
        else:
            kept.append(one)
    return kept


def _variable(instruction: Any) -> int | None:
    """Returns the number of the variable that the instruction reads or assigns; None if there is none."""
    if isinstance(instruction, _Named) or instruction[0] not in _LOCALS:
        return None
    return int(instruction[2])


def _instructions(function: types.FunctionType, given: dict[str, Any], owner: Any) -> tuple[Any, ...]:
    """Returns a function's instructions with names replaced by values, each as (operation, type, argument) or _Named.

    Local variables are numbered by first use; assigning a variable that is `given` raises ValueError. The instructions
    of a nested function, such as a comprehension, follow its name.
    """
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    closed = {name: cell.cell_contents for name, cell in cells.items()}
    return tuple(_without_brief_names(list(_of_code(code, _Scope(given, closed, function.__globals__, owner)))))


@dataclass(frozen=True)
class _Scope:
    """The values of names in a code object: given arguments, variables of enclosing functions, and globals."""

    given: dict[str, Any]
    closed: dict[str, Any]
    names: dict[str, Any]
    owner: Any  # the method's object, or None
    first: int = 0  # number of the first variable

    def value_of(self, name: str) -> Any:
        for values in (self.closed, self.names, vars(builtins)):
            if name in values:
                return values[name]
        raise NameError(name)

    def has_members(self, value: Any) -> bool:
        return isinstance(value, types.ModuleType) or (value is self.owner and value is not None)

    def member(self, value: Any, name: str) -> Any:
        """Returns an attribute, unless code in a class computes the attribute."""
        if isinstance(value, types.ModuleType):
            return getattr(value, name)
        of_class = inspect.getattr_static(type(value), name, None)
        if hasattr(type(of_class), "__get__"):  # a method, or a property
            raise AttributeError(name)
        kept = vars(value) | vars(value).get("_modules", {})
        return kept[name] if name in kept else getattr(type(value), name)

    def within(self) -> _Scope:
        return _Scope({}, self.closed | self.given, self.names, self.owner, self.first + _MOST_VARIABLES)


def _of_code(code: types.CodeType, scope: _Scope) -> Iterator[Any]:
    numbers: dict[str, int] = {}
    named: _Named | None = None
    fresh = 0
    for operation, name in _without_cells(list(_singly(code))):
        if named is not None:
            if operation in _MEMBERS and scope.has_members(named.value):
                named = _Named(scope.member(named.value, name))
                continue
            yield named
            named = None
        if operation in _NAMES:
            named = _Named(scope.value_of(name))
        elif operation == "LOAD_FAST" and name in scope.given:
            named = _Named(scope.given[name])
        elif operation in _LOCALS:
            if name in scope.given:
                raise ValueError(name)
            # The variable of a comprehension, which CPython 3.12 and later put into the function, gets its own number.
            if operation == "LOAD_FAST_AND_CLEAR" or name not in numbers:
                numbers[name] = scope.first + fresh
                fresh += 1
            yield operation, int, numbers[name]
        elif isinstance(name, types.CodeType):
            yield operation, types.CodeType, None
            yield from _of_code(name, scope.within())
        elif operation not in _SET_UP:
            yield operation, type(name), name  # with the type, since values of different types may be equal


def _without_cells(instructions: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Removes instructions that pass variables to a nested function, because that function refers to them by name."""
    kept: list[tuple[str, Any]] = []
    handed = False
    for operation, name in instructions:
        if operation == "LOAD_CLOSURE":
            handed = True
        elif operation == "MAKE_FUNCTION":
            kept.append((operation, None))
        elif not (handed and operation == "BUILD_TUPLE") and operation != "MAKE_CELL":
            kept.append((operation, name))
            handed = False
    return kept


def _singly(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """Yields (operation, argument) pairs. Instructions of Python 3.13 and later that use two variables are split into
    two.

    Jump targets become labels, because instructions that bind names differ in length.
    """
    instructions = list(dis.get_instructions(code))
    targets = {one.offset: number for number, one in enumerate(one for one in instructions if one.is_jump_target)}
    for instruction, after in itertools.zip_longest(instructions, instructions[1:]):
        if instruction.offset in targets:
            yield "LABEL", targets[instruction.offset]
        if instruction.opname == "STORE_FAST" and after is not None and after.opname == "RERAISE":
            yield "RESTORE", None  # only CPython's code for an exception in a comprehension, whatever its variable
        elif _OF_LOCALS.fullmatch(instruction.opname):
            names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
            for deed, name in zip(re.findall("LOAD|STORE", instruction.opname), names, strict=True):
                yield f"{deed}_FAST", name
        elif instruction.opcode in _JUMPS:
            yield instruction.opname, targets[instruction.argval]
        else:
            yield instruction.opname, instruction.argval
