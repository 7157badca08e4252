// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoder for baseline JPEGs that is about twice as fast as libjpeg-turbo and bit-identical to it.

#include <array>
#include <memory>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/checkpoints.h"
#include "memory/planes.h"

namespace feedline::decode::baseline {

// Not thread-safe. Each thread should reuse one decoder, which reuses its tables and memory.
class BaselineDecoder {
 public:
  explicit BaselineDecoder(const Kernels& kernels = best_kernels());
  ~BaselineDecoder();

  // Returns false if the data that libjpeg would read for this region may be invalid. `out` is then unspecified, and
  // libjpeg must decode the region and report any error. Requires: the region is inside the image, `out` has its size
  // and the mode's channels.
  // checkpoints: the checkpoints in this file, or nullptr. Decoding starts from a known checkpoint, and adds the
  // checkpoints that it reaches after the known ones; if decoding fails, the checkpoints are unspecified. Requires: the
  // known checkpoints up to reach_of().end_mcu belong to this file.
  [[nodiscard]] bool decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out,
                            Checkpoints* checkpoints = nullptr);

  // Decodes the same rows of the file to planes: the samples that determine the region's pixels, and possibly some
  // around them. kL decodes only the luma plane. Returns false under the same conditions as decode().
  [[nodiscard]] bool decode_planes(const Frame& frame, const Box& region, ColorMode mode,
                                   const memory::Coarseness& most, memory::Planes& out,
                                   Checkpoints* checkpoints = nullptr);

  // Decodes two images together, which is faster than decoding one after the other. Failures are independent: the
  // result is true for each image that was decoded. Both decoders use the tables of the first one; they must have the
  // same kernels.
  struct Task {
    const Frame* frame;
    Box region;
    ColorMode mode;
    memory::PixelBuffer* out;
    Checkpoints* checkpoints = nullptr;
  };
  static std::array<bool, 2> decode_in_turn(BaselineDecoder& first, const Task& first_task, BaselineDecoder& second,
                                            const Task& second_task);

  // Decoding a region reads the MCUs from the scan's start up to `end_mcu`; `first_mcu` is the first with pixels in the
  // region. `skipped` of them have no pixels in the region and are decoded only to find where they end. `skipped` is 0
  // if the decoder can search for restart markers instead.
  struct Reach {
    int first_mcu = 0;
    int end_mcu = 0;
    int skipped = 0;
  };
  static Reach reach_of(const Frame& frame, const Box& region);

  // The number of restart intervals that the last decode() skipped: only their markers were checked.
  int intervals_passed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode::baseline
