// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "feedline/array.h"
#include "feedline/error.h"
#include "format/volumes/opened_version.h"
#include "memory/volume.h"
#include "storage/storage.h"

namespace feedline::format {

// The position and form of an array whose elements are stored one after another in a file.
struct DenseLayout {
  ArraySpec stored;          // dtype and extents
  std::uint64_t offset = 0;  // bytes before the first element
  bool is_fortran = false;   // the first axis varies fastest
  bool is_swapped = false;   // the elements are big-endian
  // Each element becomes value * slope + inter, rounded to float32.
  struct Scaling {
    double slope = 1, inter = 0;
  };
  std::optional<Scaling> scaling = {};
  bool has_spatial_axes_first = false;
};

// Returns a volume that reads the elements from the file: from its mapping if it is local, or by ranges. kData: the
// file is shorter than the array. opened: the file from which the reader was made. Requires: the size of the array does
// not overflow.
Result<std::shared_ptr<const memory::Volume>> make_dense_volume(std::shared_ptr<const storage::Reader> reader,
                                                                const DenseLayout& layout, OpenedVersion opened,
                                                                std::string_view array = {});

// Opens a .npy file as one volume. Errors: as for memory::read_npy_header() and make_dense_volume().
Result<std::shared_ptr<const memory::Volume>> open_npy_volume(std::shared_ptr<const storage::Storage> storage,
                                                              const std::string& path);

}  // namespace feedline::format
