# SPDX-License-Identifier: Apache-2.0
"""String values that arguments accept, as Literal types. Each function checks its arguments when it is called."""

from __future__ import annotations

from typing import Literal

OnError = Literal["raise", "skip", "replace"]
Uneven = Literal["pad", "drop", "exact"]
Layout = Literal["NCHW", "NHWC"]
SampleOutput = Literal["numpy", "torch", "tv_tensors"]
BatchOutput = Literal["torch", "numpy", "tv_tensors", "dlpack"]
MixMode = Literal["batch", "elem", "pair", "half"]
Partner = Literal["roll", "flip"]
Missing = Literal["error", "skip", "none"]
Verify = Literal["manifest", "headers"]
Crowd = Literal["skip", "keep"]
Collation = Literal["stack", "pad", "list"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]
ImageDtype = Literal["uint8", "uint16", "float32", "native"]
Fidelity = Literal["exact", "fast"]
Documents = Literal["pack", "apart", "whole"]
PackMethod = Literal["best_fit", "concat"]
LongDocuments = Literal["split", "truncate", "drop"]
PackLabels = Literal["input_ids", "next_token"]
PackPreset = Literal["transformers", "torchtitan", "megatron", "thd"]
Lower = Literal["auto", "never", "require"]
WorkerMethod = Literal["process", "multiprocessing", "thread"]
