# SPDX-License-Identifier: Apache-2.0
"""A package of which a part is there: an installation that was stopped."""

from ...findings import Threshold
from ..checking import ENVIRONMENT, Case, Check, Told, page, told
from ..reading.wheels import leftovers_in

HALF = Threshold(0.5, "of a package's files are gone: more than a few that somebody removed")
_SAYS = "Make it whole: {}"


def _judges(case: Case) -> Told:
    seen = case.seen
    for one in (one for one in seen.distributions if not one.is_systems and not seen.is_condas(one)):
        managed = one.installer in ("", "pip", "uv") and not one.is_egg
        lacking = "METADATA" if not one.has_metadata and not one.is_egg else "RECORD"
        if (lacking == "METADATA" or (managed and not one.has_record)) and one.folder.is_dir():
            yield told(
                "half_installed", "error", f"{one.name} {one.version}: {one.folder} has no {lacking}",
                fix=_SAYS.format(case.reinstalls(one.name)), package=one.name,
            )  # fmt: skip
    for owner, (gone, count) in case.files.half.items():
        yield told(
            "half_installed", "error", f"{owner}: {gone} of its {count} files are not there",
            fix=_SAYS.format(case.reinstalls(owner)), package=owner,
        )  # fmt: skip
    for path in leftovers_in(seen.place.site):
        yield told(
            "half_installed", "error", f"{path} is what pip had set aside when it was stopped",
            fix=f"Reinstall that package, then remove {path}", path=str(path),
        )  # fmt: skip


CHECK = Check(
    page(
        code="half_installed",
        title="a package is there in part",
        means="An installation or a removal was stopped: by a kill, a full disk, a lost connection. Imports "
        "fail, or find an "
        "older half.",
        recognised="A dist-info folder without METADATA or RECORD, a package most of whose files are not there, "
        "or a folder "
        "that begins with `~`, as pip leaves it.",
        to_do="Reinstall the package by the manager that installed it.",
        example="numpy 2.1.0: .../numpy-2.1.0.dist-info has no RECORD",
    ),
    ENVIRONMENT + 10,
    _judges,
)
