// SPDX-License-Identifier: Apache-2.0
#pragma once

// Our own decoder of baseline JPEGs, about twice as fast as libjpeg-turbo, whose pixels it gives bit for bit.

#include <memory>

#include "decode/baseline_frame.h"
#include "decode/codec.h"

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

  // Restart intervals that the last decode() neither read nor judged: of those only the markers were looked at.
  int intervals_passed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode::baseline
