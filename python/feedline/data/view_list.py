# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments of :meth:`Dataset.views`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _engine
from ..errors import ConfigError
from . import arguments
from .ops.chain import Chain

# the engine's form of a view: name or "", chain, number or None, and for each of its first operations the index of the
# view whose draws it shares
Row = tuple[str, _engine.Dataset, int | None, Sequence[int]]
View = tuple[str, Chain, int | None, Sequence[int]]


class Views:
    """Views without a dataset, for :meth:`Dataset.views`. Immutable."""

    def __init__(self, views: list[View], text: str) -> None:
        self._views = views
        self._text = text

    @property
    def rows(self) -> list[Row]:
        """The views in the form that the engine expects."""
        return [(name, chain._engine, count, drawn_as) for name, chain, count, drawn_as in self._views]

    def __repr__(self) -> str:
        return f"feedline.views({self._text})"


def views(*views: Any, **named: Any) -> Views:
    """Creates views as an object that ``dataset.views`` accepts: ``feedline.views(a=chain, b=chain, local=(chain,
    8))``.

    Args:
        views: one list of chains, whose fields are numbered.
        named: a chain from :func:`feedline.chain`, or ``(chain, n)``.

    Raises:
        ConfigError: an argument has a form that is not listed here.
    """
    return of("views", views, named)


def of(where: str, views: tuple[Any, ...], named: Mapping[str, Any]) -> Views:
    """Returns the views that a call to :meth:`Dataset.views` describes."""
    if len(views) > 1 or (views and named):
        raise ConfigError(f"{where}: pass one list of chains, or each view by its name")
    if views and isinstance(views[0], Views):
        return views[0]
    if not views:
        return _made(where, named.items(), ", ".join(f"{name}={_text(view)}" for name, view in named.items()))
    if not isinstance(views[0], (list, tuple)):
        raise ConfigError(f"{where}: the views must be a list of chains, or views by name, not {views[0]!r}")
    return _made(where, [("", view) for view in views[0]], f"[{', '.join(map(_text, views[0]))}]")


def drawn_alike(views: Mapping[str, Chain], drawn_as: Sequence[Sequence[int]]) -> Views:
    """Returns single views, whose first operations may share their random draws with earlier views.

    Args:
        drawn_as: for each view, the indices of the views with which its first operations share random draws.
    """
    made = of("views", (), views)
    drawn: list[View] = [(*view[:3], places) for view, places in zip(made._views, drawn_as, strict=True)]
    return Views(drawn, repr(made).removeprefix("feedline.views(").removesuffix(")"))


def field_name(where: str, field: Any) -> str:
    """Returns the name of the image from which views are created; "" selects a sample's only image."""
    if field is not None and (not isinstance(field, str) or not field):
        raise ConfigError(f"{where}: field must be the name of an image, not {field!r}")
    return field or ""


def _made(where: str, views: Any, text: str) -> Views:
    checked = [_checked(where, name, view) for name, view in views]
    if not checked:
        raise ConfigError(f"{where}: pass at least one view")
    return Views(checked, text)


def _checked(where: str, name: str, view: Any) -> View:
    count = None
    if isinstance(view, (list, tuple)):
        if len(view) != 2:
            raise ConfigError(f"{where}: a view must be a chain or (chain, number), not {view!r}")
        view, count = view[0], arguments.integer(where, f"the number of {name}" if name else "how many", view[1], low=1)
    if not isinstance(view, Chain):
        raise ConfigError(f"{where}: a view must be a chain from feedline.chain(), not {view!r}")
    return name, view, count, ()


def _text(view: Any) -> str:
    return f"({view[0]!r}, {view[1]!r})" if isinstance(view, (list, tuple)) and len(view) == 2 else repr(view)
