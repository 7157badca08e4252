// SPDX-License-Identifier: Apache-2.0
#pragma once

// The coefficients of a progressive image, which each scan adds to. Values are stored for the blocks around a region.
// For all other blocks, only a mask of the nonzero coefficients is stored.

#include <array>
#include <cstddef>
#include <cstdint>

#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/baseline/baseline_planes.h"
#include "memory/arena.h"

namespace feedline::decode::progressive {

using baseline::Frame;
using baseline::kMaxComponents;
using baseline::Window;

// Not thread-safe. Each thread should reuse one object.
class Coefficients {
 public:
  // Allocates zeroed coefficients: 128 bytes per block in the window, and 8 bytes per block elsewhere. Returns false if
  // memory runs out.
  [[nodiscard]] bool start(const Frame& frame, const Window& window, int group);
  // Retains up to kMaxRetained bytes of the image's memory for the next image.
  void end() { arena_.reset(); }

  // Return the number of the image's blocks, without the padding of its last MCUs.
  int blocks_across(int component) const { return planes_[static_cast<std::size_t>(component)].across; }
  int blocks_down(int component) const { return planes_[static_cast<std::size_t>(component)].down; }
  // Return the range of blocks whose values are stored.
  int first_column(int component) const { return planes_[static_cast<std::size_t>(component)].first_column; }
  int end_column(int component) const { return planes_[static_cast<std::size_t>(component)].end_column; }
  // The size of one row of blocks.
  int groups(int component) const { return planes_[static_cast<std::size_t>(component)].groups; }

  // Returns a bit mask for each block: bit k is set if the k-th coefficient in zigzag order is not zero.
  std::uint64_t* masks(int component, int row) {
    const Plane& plane = planes_[static_cast<std::size_t>(component)];
    return plane.masks + static_cast<std::size_t>(row) * static_cast<std::size_t>(plane.across);
  }
  // Returns the coefficients of a row from first_column() on, in groups; nullptr if the row is not stored.
  std::int16_t* values(int component, int row) {
    const Plane& plane = planes_[static_cast<std::size_t>(component)];
    if (row < plane.first_row || row >= plane.end_row) return nullptr;
    return plane.values + static_cast<std::size_t>(row - plane.first_row) * plane.row_size;
  }

 private:
  struct Plane {
    int across = 0, down = 0;
    int first_column = 0, end_column = 0, first_row = 0, end_row = 0;
    int groups = 0;
    std::size_t row_size = 0;  // values
    std::uint64_t* masks = nullptr;
    std::int16_t* values = nullptr;
  };

  // Enough for photos of up to about 1,600 x 1,200 pixels; libjpeg has the same limit (jpeg_memory.h).
  static constexpr std::size_t kMaxRetained = 8 << 20;

  std::array<Plane, kMaxComponents> planes_;
  memory::Arena arena_{kMaxRetained};
};

}  // namespace feedline::decode::progressive
