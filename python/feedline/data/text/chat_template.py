# SPDX-License-Identifier: Apache-2.0
"""Chat templates: Jinja text that renders a list of messages, as transformers defines it.

A template comes with a model, so it is untrusted code: it runs in Jinja's sandbox and sees only JSON values.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import ConfigError

_OLDEST = (3, 1, 6)  # earlier versions have escapes from the sandbox
# Noncharacters of Unicode, which text for interchange does not contain: they mark the spans of {% generation %}.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")


class Unsuitable(ValueError):
    """A conversation that cannot be tokenised, with the reason."""


class Rendered(NamedTuple):
    """A rendered conversation, and the half-open spans of characters that ``{% generation %}`` blocks rendered."""

    text: str
    spans: list[tuple[int, int]]


class ChatTemplate:
    """A template with its variables. Any thread may render it.

    Raises:
        ConfigError: Jinja is missing or too old, or the template has a syntax error.
    """

    def __init__(self, where: str, source: str, variables: Mapping[str, Any]) -> None:
        self._where, self.source, self._variables = where, source, dict(variables)
        self.has_spans = bool(_GENERATION.search(source))
        _ = self._compiled  # reports errors at the call

    @functools.cached_property
    def _compiled(self) -> Any:
        jinja2 = _jinja2(self._where)
        try:
            return _environment().from_string(self.source)
        except jinja2.TemplateError as error:
            line = getattr(error, "lineno", None)
            at = "" if line is None else f" in line {line}"
            raise ConfigError(f"{self._where}: the chat template has an error{at}: {error}") from None

    def identity(self) -> dict[str, Any]:
        """Returns JSON values that determine the rendered text."""
        return {"source": self.source, "variables": self._variables}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_compiled"}

    def render(self, messages: Sequence[Any], tools: Sequence[Any] | None, generation_prompt: bool = False) -> Rendered:
        """Renders messages. Raises the template's exceptions, and Unsuitable for text that contains U+FDD0 or U+FDD1
        if the template marks spans.
        """
        marked = self._compiled.render(
            **{
                **self._variables,
                "messages": messages,
                "tools": tools,
                "documents": None,
                "add_generation_prompt": generation_prompt,
            }
        )
        return _without_marks(marked) if self.has_spans else Rendered(marked, [])


def _without_marks(marked: str) -> Rendered:
    parts = re.split(f"({_BEGIN}|{_END})", marked)  # text, mark, text, mark, ..., text
    marks = parts[1::2]
    if marks != [_BEGIN, _END] * (len(marks) // 2):
        raise Unsuitable("the text contains U+FDD0 or U+FDD1, which mark the spans of {% generation %}; remove them")
    ends = list(itertools.accumulate(map(len, parts[::2])))
    return Rendered("".join(parts[::2]), list(zip(ends[0:-1:2], ends[1:-1:2], strict=True)))


def _jinja2(where: str) -> Any:
    try:
        import jinja2
    except ImportError:
        raise ConfigError(f'{where}: chat templates need Jinja2: pip install "feedline[tokenize]"') from None
    version = tuple(int(part) for part in re.findall(r"\d+", jinja2.__version__)[:3])
    if version < _OLDEST:
        raise ConfigError(
            f"{where}: chat templates are untrusted code, and Jinja2 {jinja2.__version__} has known escapes from its "
            'sandbox: pip install "jinja2>=3.1.6"'
        )
    return jinja2


@functools.cache
def _environment() -> Any:
    """Returns the environment of transformers' templates: its options, filters and functions."""
    import jinja2
    import jinja2.ext
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        """Marks the output of ``{% generation %}`` blocks."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

        def _marked(self, caller: Any) -> str:
            return f"{_BEGIN}{caller()}{_END}"

    class Dict:
        """``dict()`` without the methods of Python's class."""

        def __call__(self, *values: Any, **named: Any) -> dict[Any, Any]:
            return dict(*values, **named)

    class Namespace(jinja2.utils.Namespace):
        """A namespace without names that begin with an underscore."""

        def __init__(*values: Any, **named: Any) -> None:
            own, given = values[0], dict(*values[1:], **named)
            for name in given:
                _check_name(name)
            jinja2.utils.Namespace.__init__(own, given)

        def __setitem__(self, name: str, value: Any) -> None:
            _check_name(name)
            super().__setitem__(name, value)

    def _check_name(name: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a namespace cannot contain {name!r}")

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    def strftime_now(format: str) -> str:
        return datetime.datetime.now().strftime(format)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {
        "raise_exception": raise_exception,
        "strftime_now": strftime_now,
        "dict": Dict(),
        "namespace": Namespace,
    }
    return environment


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Jinja's own filter escapes HTML characters."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
