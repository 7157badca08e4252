// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores the most recent sample rows after the inverse DCT, for the columns around a region, until pixels are computed
// from them.

#include <array>
#include <cstddef>
#include <cstdint>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "memory/planes.h"
#include "memory/record.h"

namespace feedline::decode::baseline {

// The part of an image that is decoded for a region, in rows and columns of MCUs.
struct Window {
  int first_column = 0, end_column = 0;
  int first_row = 0, end_row = 0;  // contain the samples that determine the region's pixels
  int end_coded_row = 0;           // the end of the rows that libjpeg reads to produce the region's last row
};
Window window_of(const Frame& frame, const Box& region);

// Allocates the samples of the first out.count components in the window, with each sample covering at most the given
// number of pixels, and sets their positions. Returns false if memory runs out.
[[nodiscard]] bool lay_out_planes(const Frame& frame, const Window& window, const memory::Coarseness& most,
                                  memory::Planes& out);

// Not thread-safe. Each thread should reuse one object.
class BaselinePlanes {
 public:
  // Requires: `frame` stays valid until the last pixels have been written.
  void start(const Frame& frame, const Window& window, const Kernels& kernels);

  // Returns the destination of a component's samples, starting with row `y` and the first column of the window.
  std::uint8_t* row(int component, int y) {
    const Plane& plane = planes_[component];
    return plane.first + static_cast<std::size_t>(y & plane.row_mask) * plane.stride;
  }
  std::size_t stride(int component) const { return planes_[component].stride; }

  // Call this function when the samples of a row of MCUs are complete.
  void end_mcu_row(int mcu_row);

  // Writes the pixels of image row `y`, starting at `region.left`. Requires: the samples of the row and of its
  // neighbours are available.
  void write_row(const Box& region, int y, ColorMode mode, std::uint8_t* out);

 private:
  struct Plane {
    std::uint8_t* first = nullptr;
    std::size_t stride = 0;
    int row_mask = 0;
    int first_sample = 0;  // the column of the component's row at which the plane begins
  };

  const std::uint8_t* chroma_row(const Box& region, int component, int y);
  void write_colour(const Box& region, int y, std::uint8_t* out);

  const Frame* frame_ = nullptr;
  const Kernels* kernels_ = nullptr;
  Window window_;
  std::array<Plane, kMaxComponents> planes_;
  std::array<std::uint8_t*, 2> upsampled_{};
  std::uint8_t* rgb_ = nullptr;
  memory::ByteBuffer memory_;
};

}  // namespace feedline::decode::baseline
