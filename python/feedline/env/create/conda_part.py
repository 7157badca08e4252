# SPDX-License-Identifier: Apache-2.0
"""Solves, verifies and installs conda packages with py-rattler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import ConfigError, StorageError
from ..optional_deps import optional_dependency
from ..reading.place import platform_name
from . import availability
from .plan import Plan

_DEFAULT = ("conda-forge",)


def install_conda(
    plan: Plan, prefix: Path, channels: Sequence[str], show_progress: bool, step: Callable[[str], None]
) -> None:
    """Installs the conda part of `plan`.

    Args:
        channels: names, URLs, or folders as ``file:///...``; if empty, the plan's channels.
        step: function that is called with a description before each step.

    Raises:
        ConfigError: no set of packages satisfies the plan, or an archive's hash differs from the lock.
        StorageError: a channel cannot be reached, or a package cannot be installed.
    """
    rattler = optional_dependency("rattler")
    sources = [one for one in (channels or plan.listing.channels or _DEFAULT) if one not in ("nodefaults", "local")]
    try:
        records = asyncio.run(_solve(rattler, sources, plan, step))
    except Exception as error:  # py-rattler's exceptions have no common base class
        words = availability.without_drawing(str(error))
        if type(error).__name__ in ("SolverError", "InvalidMatchSpecError", "InvalidMatchSpecException"):
            raise ConfigError(
                f"{plan.listing.source}: no set of packages from {', '.join(sources)} satisfies the requirements: "
                f"{_lacking(rattler, sources, plan) or words}"
            ) from None
        raise StorageError(f"channels {', '.join(sources)}: {words}") from None
    _compare(plan, records)
    try:
        asyncio.run(rattler.install(records=records, target_prefix=str(prefix), show_progress=show_progress))
    except Exception as error:
        raise StorageError(
            f"conda packages could not be installed into {prefix}: {' '.join(str(error).split())}"
        ) from None


async def _solve(rattler: Any, sources: list[str], plan: Plan, step: Callable[[str], None]) -> list[Any]:
    gateway = rattler.Gateway()  # caches the indexes, so that solving does not include reading them
    step("channel indexes")
    await gateway.query(sources, [platform_name(), "noarch"], plan.conda_specs)
    step("conda packages")
    found: list[Any] = await rattler.solve(
        sources=sources,
        specs=plan.conda_specs,
        gateway=gateway,
        virtual_packages=rattler.VirtualPackage.detect(),
    )
    return found


def _lacking(rattler: Any, sources: list[str], plan: Plan) -> str:
    """Returns which requested packages the channels lack; "" if none, or if the channels cannot be read."""
    try:
        held = asyncio.run(availability.held_by(rattler, sources, plan.conda))
    except Exception:  # the solver's own message is used instead
        return ""
    return "; ".join(availability.sentences(held, plan.conda))


def _compare(plan: Plan, records: list[Any]) -> None:
    if not plan.exact:
        return
    has = {record.name.normalized: record.sha256.hex() if record.sha256 else "" for record in records}
    for pin in plan.conda:
        theirs = has.get(pin.name, "")
        if pin.sha256 and theirs and theirs != pin.sha256:
            raise ConfigError(
                f"the channel's {pin.name} {pin.version} has SHA-256 {theirs[:12]}..., but {plan.listing.source} has "
                f"{pin.sha256[:12]}...: the archives differ"
            )
