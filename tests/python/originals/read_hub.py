# SPDX-License-Identifier: Apache-2.0
"""Reads datasets on a Hub with datasets and huggingface_hub, and prints their rows.

Usage: read_hub.py ENDPOINT FOLDER CASES. A case is [dataset, options of load_dataset, columns]; before each one,
/case/NUMBER/MODE is requested.
"""

import contextlib
import json
import os
import shutil
import sys
import urllib.request

endpoint, folder, cases = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
os.environ.pop("HF_HUB_OFFLINE", None)
os.environ.update(HF_ENDPOINT=endpoint, HF_HOME=folder, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1")

import datasets  # noqa: E402
import huggingface_hub  # noqa: E402

datasets.disable_progress_bars()


def begin(case: int, mode: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # nothing is read from the caches of another case
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"{endpoint}/case/{case}/{mode}")


def shown(value: object) -> object:
    return list(value.getpixel((0, 0))) if hasattr(value, "getpixel") else value


found: dict[str, list[object]] = {"streaming": [], "plain": []}
for number, (name, options, columns) in enumerate(cases):
    for mode, rows in found.items():
        begin(number, mode)
        try:
            dataset = datasets.load_dataset(name, streaming=mode == "streaming", **options)
            rows.append([[shown(row[column]) for column in columns] for row in dataset])
        except Exception as error:
            rows.append(f"{type(error).__name__}: {error}")
begin(len(cases), "download")
path = huggingface_hub.hf_hub_download(cases[0][0], "README.md", repo_type="dataset")
with open(path) as file:
    found["card"] = [file.read()]
print(json.dumps(found))
