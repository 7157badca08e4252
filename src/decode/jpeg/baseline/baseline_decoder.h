// SPDX-License-Identifier: Apache-2.0
#pragma once

// Our own decoder of baseline JPEGs, about twice as fast as libjpeg-turbo, whose pixels it gives bit for bit.

#include <array>
#include <memory>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "memory/planes.h"

namespace feedline::decode::baseline {

// A thread keeps one: tables and memory are reused. Not for several threads at once.
class BaselineDecoder {
 public:
  explicit BaselineDecoder(const Kernels& kernels = best_kernels());
  ~BaselineDecoder();

  // False where anything about the file is doubtful, in what libjpeg would read for this region: then `out` is
  // unspecified, and libjpeg has to decode the region and to say what it thinks of the file.
  // Requires: region lies inside the image, `out` has its size and the mode's channels.
  [[nodiscard]] bool decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out);

  // The same rows of the same file, as planes: those samples that the region's pixels are made of, and maybe some
  // beside them. kL takes brightness alone. False as above.
  [[nodiscard]] bool decode_planes(const Frame& frame, const Box& region, ColorMode mode,
                                   const memory::Coarseness& most, memory::Planes& out);

  // decode() of two images in one go, which takes less time than one after the other. What is wrong with one does not
  // touch the other: true for each that is decoded. The decoders use the first one's tables; their kernels are the
  // same.
  struct Task {
    const Frame* frame;
    Box region;
    ColorMode mode;
    memory::PixelBuffer* out;
  };
  static std::array<bool, 2> decode_in_turn(BaselineDecoder& first, const Task& first_task, BaselineDecoder& second,
                                            const Task& second_task);

  // Restart intervals that the last decode() neither read nor judged: of those only the markers were looked at.
  int intervals_passed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode::baseline
