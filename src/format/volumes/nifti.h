// SPDX-License-Identifier: Apache-2.0
#pragma once

// NIfTI-1 and NIfTI-2 headers of single files (.nii). Numbers have the byte order in which the first is 348 or 540.
//
//     NIfTI-1    0  4  348                        NIfTI-2    0  4  540
//               40 16  dimensions, then 7 extents            4  8  "n+2\0\r\n\x1a\n"
//               70  2  type                                 12  2  type
//               76 32  pixdim: float32                      16 64  dimensions, then 7 extents: int64
//              108  4  offset of the elements: float32     104 64  pixdim: float64
//              112  8  slope, intercept: float32           168  8  offset of the elements: int64
//              252  4  qform code, sform code: int16       176 16  slope, intercept: float64
//              256 24  quaternion b c d, offset x y z      344  8  qform code, sform code: int32
//              280 48  sform: 3 rows of 4 float32          352 48  quaternion b c d, offset x y z: float64
//              344  4  "n+1\0"                             400 96  sform: 3 rows of 4 float64
//
// Source: nifti1.h and nifti2.h of the NIfTI Data Format Working Group. Affines as in nibabel: sform, otherwise qform,
// otherwise the spacing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cache/notes.h"
#include "feedline/error.h"
#include "format/volumes/dense_volume.h"
#include "memory/volume.h"
#include "storage/storage.h"

namespace feedline::format {

using Affine = std::array<double, 16>;  // 4 x 4, rows first: voxel (x, y, z, 1) to millimetres in RAS

struct NiftiHeader {
  DenseLayout layout;
  Affine affine{};
};

// The number of bytes at the start of a file that contain any header.
inline constexpr std::size_t kMostNiftiHeader = 544;

// Reads a header from the first bytes of a file. kData: not a NIfTI file, an unsupported type, extents that are invalid
// or overflow, or a broken affine.
Result<NiftiHeader> read_nifti_header(std::span<const std::byte> front);

struct NiftiVolume {
  std::shared_ptr<const memory::Volume> volume;
  Affine affine{};
};

// Opens a .nii or .nii.gz file. Compressed files are decompressed once into the user's cache folder (plain_copy.h).
// Errors: as for read_nifti_header() and decompressed().
Result<NiftiVolume> open_nifti(std::shared_ptr<const storage::Storage> storage, const std::string& path,
                               cache::Notes* notes);

bool is_nifti_name(std::string_view path);

}  // namespace feedline::format
