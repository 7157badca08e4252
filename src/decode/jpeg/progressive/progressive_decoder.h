// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoder for progressive JPEGs whose pixels are bit-identical to libjpeg-turbo's.

#include <memory>

#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_kernels.h"
#include "decode/jpeg/progressive/progressive_scan.h"
#include "memory/planes.h"

namespace feedline::decode::progressive {

// Not thread-safe. Each thread should reuse one decoder, which reuses its tables and memory.
class ProgressiveDecoder {
 public:
  explicit ProgressiveDecoder(const baseline::Kernels& kernels);
  ~ProgressiveDecoder();

  // Returns false if the file may be invalid. `out` is then unspecified, and libjpeg must decode the region and report
  // any error. Consumes `scans`. Requires: the region is inside the image, `out` has its size and the mode's channels.
  [[nodiscard]] bool decode(ScanReader& scans, const Box& region, ColorMode mode, memory::PixelBuffer& out);
  // Decodes to planes like BaselineDecoder.
  [[nodiscard]] bool decode_planes(ScanReader& scans, const Box& region, ColorMode mode, const memory::Coarseness& most,
                                   memory::Planes& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode::progressive
