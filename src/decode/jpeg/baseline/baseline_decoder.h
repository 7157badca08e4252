// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoder of baseline JPEGs, about twice as fast as libjpeg-turbo and bit-identical to it.

#include <array>
#include <memory>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "memory/planes.h"

namespace feedline::decode::baseline {

// Not thread-safe. Each thread should reuse one, which reuses tables and memory.
class BaselineDecoder {
 public:
  explicit BaselineDecoder(const Kernels& kernels = best_kernels());
  ~BaselineDecoder();

  // Returns false if the data that libjpeg would read for this region may be invalid; `out` is then unspecified, and
  // libjpeg must decode the region and report any error. Requires: the region is inside the image, `out` has its size
  // and the mode's channels.
  [[nodiscard]] bool decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out);

  // Decodes the same rows of the same file to planes: the samples that determine the region's pixels, and possibly some
  // next to them. kL decodes only the luma plane. Returns false as above.
  [[nodiscard]] bool decode_planes(const Frame& frame, const Box& region, ColorMode mode,
                                   const memory::Coarseness& most, memory::Planes& out);

  // Decodes two images together, which is faster than one after the other. Failures are independent: returns true for
  // each image that was decoded. Both decoders use the first one's tables; they must have the same kernels.
  struct Task {
    const Frame* frame;
    Box region;
    ColorMode mode;
    memory::PixelBuffer* out;
  };
  static std::array<bool, 2> decode_in_turn(BaselineDecoder& first, const Task& first_task, BaselineDecoder& second,
                                            const Task& second_task);

  // The number of restart intervals that the last decode() skipped: only their markers were checked.
  int intervals_passed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode::baseline
