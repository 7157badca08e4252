#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pillow 9.5.0 (libjpeg-turbo 2.1.5.1) and Pillow 13.0.0 (3.2.0) decode the same progressive JPEG to different pixels if
# the file ends, with an end marker, before its last scans: libjpeg-turbo 3.0.1 changed block smoothing next to edges and
# in components that are sampled twice vertically. A complete file has the same pixels in both.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install pillow==13.0.0
python -m pip install --quiet --disable-pip-version-check --target=older pillow==9.5.0

cat >decode.py <<'PYTHON'
import hashlib
import re
import sys

from PIL import Image

if sys.argv[1] == "write":
    gradient = Image.linear_gradient("L").resize((160, 120))
    image = Image.merge("RGB", (gradient, gradient.rotate(90), Image.radial_gradient("L").resize((160, 120))))
    image.save("whole.jpg", progressive=True, quality=85, subsampling="4:2:0")
    data = open("whole.jpg", "rb").read()
    second = [match.start() for match in re.finditer(b"\xff\xda", data)][1]
    open("one_scan.jpg", "wb").write(data[:second] + b"\xff\xd9")
else:
    print(hashlib.sha256(Image.open(sys.argv[1]).convert("RGB").tobytes()).hexdigest())
PYTHON

python decode.py write
{
  for name in whole one_scan; do
    [ "$(python decode.py $name.jpg)" = "$(PYTHONPATH=older python decode.py $name.jpg)" ] && verdict=equal || verdict=different
    echo "$name.jpg: $verdict"
  done
} | expect "whole.jpg: equal
one_scan.jpg: different"
