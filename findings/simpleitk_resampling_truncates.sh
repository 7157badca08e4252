#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SimpleITK 2.5.7 truncates interpolated values of integer images towards 0 instead of rounding them, so that resampled scans
# become darker by half a unit on average, and negative values lighter. SciPy 1.17.1 rounds. TorchIO's Resample and Resize
# call SimpleITK.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install numpy==2.4.6 scipy==1.17.1 SimpleITK==2.5.7

python - <<'PYTHON' | expect "exact: [100.0, 111.3, 122.6, 133.9, 145.2, 156.5]
SimpleITK: [100, 111, 122, 133, 145, 156] and [-100, -111, -122, -133, -145, -156]
SciPy: [100, 111, 123, 134, 145, 157] and [-100, -111, -123, -134, -145, -157]"
import numpy
import scipy.ndimage
import SimpleITK


def resampled(values, step):
    image = SimpleITK.GetImageFromArray(numpy.tile(values, (2, 2, 1)))
    size, origin, spacing = (6, 2, 2), (0.0, 0.0, 0.0), (step, 1.0, 1.0)
    linear, same = SimpleITK.sitkLinear, SimpleITK.Transform()
    made = SimpleITK.Resample(image, size, same, linear, origin, spacing, image.GetDirection(), 0.0, image.GetPixelID())
    return SimpleITK.GetArrayFromImage(made)[0, 0]


step, ramp = 1.13, numpy.arange(100, 300, 10)
print("exact:", [round(float(x), 1) for x in resampled(ramp.astype(numpy.float64), step)])
signed = [ramp.astype(numpy.int16), -ramp.astype(numpy.int16)]
print("SimpleITK:", " and ".join(str(resampled(one, step).tolist()) for one in signed))
at = [numpy.arange(6) * step]
print("SciPy:", " and ".join(str(scipy.ndimage.map_coordinates(one, at, order=1).tolist()) for one in signed))
PYTHON
