# SPDX-License-Identifier: Apache-2.0
"""A busy GPU with Tensor Cores computes in float32."""

from __future__ import annotations

from feedline.diagnose.rules.analysis import Analysis
from feedline.diagnose.rules.cause import Cause, Found, Rule
from feedline.diagnose.rules.copies import TRACE
from feedline.diagnose.rules.fixes import Fix
from feedline.diagnose.rules.shares import IDLE_LOADER
from feedline.findings import Entry, Threshold
from feedline.profiler.model import prediction
from feedline.profiler.summary.figures import Summary

FEWEST_WATCHED = Threshold(5, "minimum number of observed steps to conclude that no step uses autocast")
BUSY = Threshold(0.8, "GPU-Util below which the step is not limited by the GPU")
MATRIX = Threshold(
    0.5,
    "assumed fraction of a busy GPU's time that is spent in matrix products and convolutions; only a trace has the "
    "kernel names",
)
VOLTA = Threshold(70, "minimum compute capability with Tensor Cores")
AMPERE = Threshold(80, "minimum compute capability with TF32")
MOST_FLOAT32 = Threshold(0.5, "fraction of float32 parameters below which the run counts as using lower precision")
LEAST = Threshold(0.8, "fraction of the matrix time that lower precision saves")


def _evaluate(analysis: Analysis) -> Found | None:
    summary, gpu = analysis.summary, analysis.summary.on_device.gpu
    capability = _capability(summary)
    if gpu is None or gpu.shared or gpu.utilisation < BUSY or summary.waits.loader >= IDLE_LOADER:
        return None
    if capability is None or capability < VOLTA or _is_reduced(summary) is not False:
        return None
    share = analysis.step * gpu.utilisation * MATRIX
    analysis.step -= share
    evidence = [
        f"{gpu.name or 'the GPU'} (compute capability {capability / 10:.1f}) has Tensor Cores and is busy "
        f"{gpu.utilisation:.0%} of the time",
        "parameters are float32, no autocast was entered, "
        f"float32 matrix products are set to {summary.on_device.device.get('matmul_precision', '(unknown)')!r}",
    ]
    against = [f"matrix products and convolutions are assumed to take {MATRIX:.0%} of the GPU time; {TRACE}"]
    if capability >= AMPERE and summary.on_device.device.get("cudnn_tf32"):
        against.append("convolutions already use TF32, cuDNN's default")
    return Found(share, 0.5, evidence, against, (0.0, prediction.gain_of_share(share, LEAST)[0]))


def _capability(summary: Summary) -> int | None:
    known = summary.on_device.device.get("capability")
    return known if isinstance(known, int) else summary.on_device.gpu.capability if summary.on_device.gpu else None


def _is_reduced(summary: Summary) -> bool | None:
    """Whether the run computes in lower precision than float32; None if too little was observed."""
    if summary.on_device.device.get("autocast"):
        return True
    elements = summary.on_device.device.get("elements") or {}
    if not elements or summary.on_device.watched_steps < FEWEST_WATCHED:
        return None
    if elements.get("torch.float32", 0) < MOST_FLOAT32 * sum(elements.values()):
        return True
    tf32 = (_capability(summary) or 0) >= AMPERE and summary.on_device.device.get("matmul_precision") in (
        "high",
        "medium",
    )
    return bool(tf32)


def _unseen(summary: Summary) -> str | None:
    on_cuda = summary.loader.get("cuda") or summary.on_device.device.get("type") == "cuda"
    if not summary.uses_device or not on_cuda or summary.waits.loader >= IDLE_LOADER:
        return None
    why = _unseen_in_words(summary)
    return None if why is None else f"{why}; {TRACE}"


def _unseen_in_words(summary: Summary) -> str | None:
    if _is_reduced(summary) is None:
        watched = summary.on_device.watched_steps
        if summary.on_device.device.get("elements") and watched < FEWEST_WATCHED:
            return f"only {watched} steps were observed, too few to conclude that no step used autocast"
        return "no optimizer step over parameters on the GPU was observed in a watched step"
    if _is_reduced(summary):
        return None
    if summary.on_device.gpu is None:
        return summary.missing.get("gpu", "the GPU's utilization was not observed")
    if summary.on_device.gpu.shared:
        return "other programs use the same GPU, so this run's share of the utilization is unknown"
    return "the GPU's compute capability is unknown" if _capability(summary) is None else None


CAUSE = Cause(
    Entry(
        code="precision_not_reduced",
        verb="diagnose",
        title="float32 on a busy GPU with Tensor Cores",
        means="Tensor Cores multiply bfloat16, float16 and TF32 matrices several times as fast as float32 matrices, "
        "but the run uses float32. Autocast does not silently fall back to float32 because of a library's version; a "
        "trace shows the kernels that ran.",
        recognised="Checks the dtypes of parameters, autocast, TF32 settings and GPU-Util. The finding is never "
        "certain, as the time spent in matrix products is an assumption.",
        to_do="Enable autocast, or allow TF32.",
        abstains="Other programs use the GPU too, no optimizer step was observed, or the GPU's model or load is "
        "unknown.",
        example="A100 (compute capability 8.0) has Tensor Cores and is busy 96 % of the time.",
    ),
    rules=(Rule(90, _evaluate),),
    fix=Fix(
        "Use torch.autocast with bfloat16 (float16 and GradScaler before Ampere), or "
        "torch.set_float32_matmul_precision('high')."
    ),
    unseen=_unseen,
)
