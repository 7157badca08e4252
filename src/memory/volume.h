// SPDX-License-Identifier: Apache-2.0
#pragma once

// N-D arrays that are read in boxes. Formats implement Volume; fields of samples are boxes of volumes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/record.h"
#include "memory/strided_copy.h"

namespace feedline::memory {

// Memory that a thread reuses for reading boxes.
struct VolumeBuffers {
  ByteBuffer stored, chunk, shuffled, raw, index;
};

// An opened array. Immutable and thread-safe.
class Volume {
 public:
  virtual ~Volume() = default;
  virtual const ArraySpec& spec() const = 0;  // dtype as delivered, and all extents
  // The extents of the units that are stored and decoded as a whole. Equal to 1 along every axis if every element can
  // be read separately.
  virtual Shape chunk() const = 0;
  // Writes the elements [begin, begin + size) in C order, and returns the number of bytes read from storage. Errors
  // name the file. kData: the stored data is damaged. Requires: the box is inside the array and not empty.
  virtual Result<std::uint64_t> read_box(std::span<const std::int64_t> begin, std::span<const std::int64_t> size,
                                         std::byte* out, VolumeBuffers& buffers) const = 0;
  // Returns the box without a copy, with the stride of each axis in bytes, if its elements are in memory as delivered,
  // and contiguous along the last axis; otherwise nullopt. The memory is valid as long as the volume exists. Errors: as
  // for read_box().
  struct View {
    const std::byte* data = nullptr;
    Strides strides{};
    std::uint64_t bytes = 0;  // that were loaded
  };
  virtual Result<std::optional<View>> view_box(std::span<const std::int64_t> /*begin*/,
                                               std::span<const std::int64_t> /*size*/) const {
    return std::nullopt;
  }
  virtual const std::string& name() const = 0;  // path of the file or folder
  // Identifies the files, their versions, and the array in them. kStorage: their versions cannot be read.
  virtual Result<std::uint64_t> key() const = 0;
  // kStorage: the file has changed since it was opened, so boxes that were read before this call may be wrong. Sends no
  // requests.
  virtual Result<void> check_unchanged() const = 0;
  // Whether the spatial axes are the first ones, as in NIfTI. Otherwise they are the last ones.
  virtual bool has_spatial_axes_first() const { return false; }
};

}  // namespace feedline::memory
