# SPDX-License-Identifier: Apache-2.0
"""The commands and the Python of three tutorials run, with a model and small data: pretraining, chats, and images."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import made_vision_models
import pytest
from made_tokenizers import trained
from running_processes import HANG_S

from feedline.cli.root import run

pytest.importorskip("torch", reason="torch, which the tutorials use, is not installed")
pytest.importorskip("jinja2")

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
COMMAND = re.compile(r"^```\n(feedline .*?)\n```", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    trained(tmp_path / "model")
    texts = ["the quick brown fox jumps over the lazy dog; " * (n % 13 + 1) for n in range(200)]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for name, field, keys, roles in (
        ("chats", "messages", ("role", "content"), ("user", "assistant")),
        ("sharegpt", "conversations", ("from", "value"), ("human", "gpt")),
    ):
        talks = [[dict(zip(keys, (role, text[:90]), strict=True)) for role in roles] for text in texts]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({field: talk}) + "\n" for talk in talks))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# what the tutorial on pretraining states about its last block
TWO_RANKS = """
whole = packed.loader(batch_size=4, shuffle=True, seed=0, drop_last=True, epochs=math.inf)
whole.load_state_dict(torch.load("pretrain.pt")["loader"])
rows = next(iter(whole)).input_ids.tolist()
assert len(resumed.input_ids) == 2 and all(row in rows for row in resumed.input_ids.tolist())
"""


def with_images(data: Path) -> str:
    """Adds images to the chats, one of them missing. Returns the tutorial's statement about it."""
    made_vision_models.model_folder(data / "qwen2-vl", made_vision_models.QWEN2)
    lines = []
    for number, line in enumerate((data / "chats.jsonl").read_text().splitlines()[:40]):
        talk = json.loads(line)["messages"]
        talk[0]["content"] = "<image>" + talk[0]["content"]
        lines.append(json.dumps({"messages": talk, "images": [f"{number}.jpg"]}))
        if number != 7:
            (data / f"{number}.jpg").write_bytes(made_vision_models.picture(100 + number, 90, seed=number))
    (data / "chats.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return "assert packed.count()['empty'] == 1"


@pytest.mark.parametrize(
    ("name", "more"),
    [("pretraining.md", TWO_RANKS), ("fine-tuning-on-chats.md", ""), ("fine-tuning-with-images.md", "")],
)
def test_a_tutorial_runs(data: Path, name: str, more: str) -> None:
    if name == "fine-tuning-with-images.md":
        more = with_images(data)
    text = (TUTORIALS / name).read_text()
    for command in COMMAND.findall(text):
        assert run([*shlex.split(command)[1:], "--jobs", "1"]) == 0
    script = "\n".join(PYTHON.findall(text))
    assert len(script) > 500
    command = [sys.executable, "-c", script + more]
    done = subprocess.run(command, cwd=data, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
