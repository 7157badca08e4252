// SPDX-License-Identifier: Apache-2.0
#pragma once

// Our own decoder of progressive JPEGs, which gives libjpeg-turbo's pixels bit for bit.

#include <memory>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_kernels.h"
#include "decode/jpeg/progressive/progressive_scan.h"
#include "memory/planes.h"

namespace feedline::decode::progressive {

// A thread keeps one: tables and memory are reused. Not for several threads at once.
class ProgressiveDecoder {
 public:
  explicit ProgressiveDecoder(const baseline::Kernels& kernels);
  ~ProgressiveDecoder();

  // False where anything about the file is doubtful: then `out` is unspecified, and libjpeg has to decode the region
  // and to say what it thinks of the file. Uses up `scans`. Requires: region lies inside the image, `out` has its size
  // and the mode's channels.
  [[nodiscard]] bool decode(ScanReader& scans, const Box& region, ColorMode mode, memory::PixelBuffer& out);
  // The same as planes, as BaselineDecoder has them.
  [[nodiscard]] bool decode_planes(ScanReader& scans, const Box& region, ColorMode mode, const memory::Coarseness& most,
                                   memory::Planes& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode::progressive
