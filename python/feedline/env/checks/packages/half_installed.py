# SPDX-License-Identifier: Apache-2.0
"""A package is incomplete because its installation was interrupted."""

from ....findings import Threshold
from ...reading.wheels import leftovers_in
from ...rules import ENVIRONMENT, Analysis, Check, Problems, page, problem

HALF = Threshold(0.5, "share of a package's files; if more are missing, they were not removed by hand")
_SAYS = "Complete it: {}"


def _evaluate(analysis: Analysis) -> Problems:
    seen = analysis.seen
    for one in (one for one in seen.distributions if not one.is_systems and not seen.is_condas(one)):
        managed = one.installer in ("", "pip", "uv") and not one.is_egg
        lacking = "METADATA" if not one.has_metadata and not one.is_egg else "RECORD"
        if (lacking == "METADATA" or (managed and not one.has_record)) and one.folder.is_dir():
            yield problem(
                "half_installed", "error", f"{one.name} {one.version}: {one.folder} has no {lacking}",
                fix=_SAYS.format(analysis.reinstalls(one.name)), package=one.name,
            )  # fmt: skip
    for owner, (gone, count) in analysis.files.half.items():
        yield problem(
            "half_installed", "error", f"{owner}: {gone} of its {count} files are missing",
            fix=_SAYS.format(analysis.reinstalls(owner)), package=owner,
        )  # fmt: skip
    for path in leftovers_in(seen.place.site):
        yield problem(
            "half_installed", "error", f"{path} was renamed by a pip run that was interrupted",
            fix=f"Reinstall that package, then remove {path}", path=str(path),
        )  # fmt: skip


CHECK = Check(
    page(
        code="half_installed",
        title="a package is incomplete",
        means="An installation or a removal was interrupted, for example by a full disk or a lost connection. Imports "
        "fail, or mix old "
        "and new files.",
        recognised="A dist-info folder has no METADATA or RECORD, most files of a package are missing, or a "
        "folder's name begins with `~`, as after an interrupted pip run.",
        to_do="Reinstall the package with the manager that installed it.",
        example="numpy 2.1.0: .../numpy-2.1.0.dist-info has no RECORD",
    ),
    ENVIRONMENT + 10,
    _evaluate,
)
