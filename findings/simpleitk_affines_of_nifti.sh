#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SimpleITK 2.5.7 reads a NIfTI file, written by nibabel 5.4.2 with both affines, by the qform if the sform's code is 2
# (aligned) or 4 (MNI), and by the sform if its code is 1 (scanner). nibabel always prefers the sform. So the same voxel has
# different coordinates in pipelines that combine them. ITK's first two axes have opposite signs, which is undone here.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install nibabel==5.4.2 numpy==2.4.6 SimpleITK==2.5.7

python - <<'PYTHON' | expect "sform code 1: nibabel [10, 20, 30], SimpleITK [10, 20, 30]
sform code 2: nibabel [10, 20, 30], SimpleITK [0, 0, 0]
sform code 4: nibabel [10, 20, 30], SimpleITK [0, 0, 0]"
import nibabel
import numpy
import SimpleITK

turned = numpy.array([[0, -1, 0, 10], [1, 0, 0, 20], [0, 0, 1, 30], [0, 0, 0, 1.0]])
for code in (1, 2, 4):
    image = nibabel.Nifti1Image(numpy.zeros((4, 5, 6), numpy.int16), None)
    image.set_qform(numpy.eye(4), 1)
    image.set_sform(turned, code)
    nibabel.save(image, "scan.nii")
    origin = nibabel.load("scan.nii").affine[:3, 3]
    other = numpy.array(SimpleITK.ReadImage("scan.nii").GetOrigin()) * (-1, -1, 1)
    print(f"sform code {code}: nibabel {[int(x) for x in origin]}, SimpleITK {[int(x) for x in other]}")
PYTHON
