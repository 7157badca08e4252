#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kaldiio 2.18.1: times in `segments` are multiplied by the rate and truncated: 2.01 s at 16,000 Hz is 32159.999999999996, so
# the utterance begins one sample early, and utterances of exactly one second have 16,000 or 16,001 samples.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install kaldiio==2.18.1 numpy==2.4.6 soundfile==0.14.0

python - <<'PYTHON' | expect "1.5 s to 2.5 s: from sample 24000, 16000 samples
2.01 s to 3.01 s: from sample 32159, 16001 samples
1.001 s to 2.001 s: from sample 16015, 16001 samples"
import kaldiio
import numpy
import soundfile

soundfile.write("r.wav", numpy.arange(64000).astype(numpy.uint16).view(numpy.int16), 16000)  # a sample is its position
segments = {"a": ("1.5", "2.5"), "b": ("2.01", "3.01"), "c": ("1.001", "2.001")}
with open("wav.scp", "w") as file:
    file.write("rec r.wav\n")
with open("segments", "w") as file:
    file.writelines(f"{name} rec {begin} {end}\n" for name, (begin, end) in segments.items())
for name, (_, samples) in kaldiio.load_scp("wav.scp", segments="segments").items():
    begin, end = segments[name]
    print(f"{begin} s to {end} s: from sample {samples.view(numpy.uint16)[0]}, {len(samples)} samples")
PYTHON
