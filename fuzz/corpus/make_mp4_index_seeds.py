# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of mp4_index_fuzz: small MP4 files of every structure that the parser reads. Needs ffmpeg 5.1."""

import subprocess
from pathlib import Path

SCENE = "-f lavfi -i testsrc2=size=32x16:rate=25 -frames:v 6 -fflags +bitexact -flags +bitexact"
H264 = f"{SCENE} -c:v libx264 -preset ultrafast -crf 51 -bf 2 -x264-params info=0"
FILES = {
    "h264": H264,
    "intra": f"{SCENE} -c:v libx264 -crf 51 -g 1",
    "fragments": f"{H264} -g 3 -movflags frag_keyframe+empty_moov+default_base_moof",
    "fragments_with_offsets": f"{H264} -g 3 -movflags frag_keyframe",
    "hevc": f"{SCENE} -c:v libx265 -x265-params log-level=none:info=0 -crf 51",
    "mpeg4": f"{SCENE} -c:v mpeg4 -q:v 31",
    "vp9": f"{SCENE} -c:v libvpx-vp9 -crf 63 -b:v 0 -color_range pc -colorspace bt709",
    "two_streams": f"-f lavfi -i sine=duration=0.1 {H264} -c:a aac",
}

folder = Path(__file__).parent / "mp4_index"
folder.mkdir(exist_ok=True)
for name, arguments in FILES.items():
    command = ["ffmpeg", "-v", "error", "-y", *arguments.split(), "-map_metadata", "-1", "-f", "mp4"]
    subprocess.run([*command, str(folder / name)], check=True, stdin=subprocess.DEVNULL)
whole = folder / "h264"
trimmed = ["ffmpeg", "-v", "error", "-y", "-ss", "0.1", "-i", str(whole), "-c", "copy", "-fflags", "+bitexact"]
subprocess.run([*trimmed, "-f", "mp4", str(folder / "trimmed")], check=True, stdin=subprocess.DEVNULL)
turned = ["ffmpeg", "-v", "error", "-y", "-i", str(whole), "-c", "copy", "-fflags", "+bitexact"]
subprocess.run(
    [*turned, "-metadata:s:v", "rotate=90", "-f", "mp4", str(folder / "turned")], check=True, stdin=subprocess.DEVNULL
)
