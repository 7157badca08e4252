// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes images of labels, such as segmentation masks, to label numbers instead of colours. The numbers equal
// numpy.asarray(PIL.Image.open(f)): palette indices, grey levels, 0 and 1 for 1-bit images, and uint16 values for
// 16-bit grey images.

#include <cstddef>
#include <memory>
#include <span>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/pixels.h"

namespace feedline::decode {

struct LabelHeader {
  int width = 0;
  int height = 0;
  DType dtype = DType::kUint8;  // or kUint16
};

// Not thread-safe. Each thread should reuse one decoder for all samples.
class LabelDecoder {
 public:
  LabelDecoder();
  ~LabelDecoder();
  LabelDecoder(LabelDecoder&&) noexcept;
  LabelDecoder& operator=(LabelDecoder&&) noexcept;

  // Reads the header. `bytes` must stay valid until decode(). kData if the image is not a PNG or is in colour.
  Result<LabelHeader> open(std::span<const std::byte> bytes);
  // Writes all labels of the opened image to the rows of `out`, which has one channel for each byte of a label.
  // Requires: open() succeeded.
  Result<void> decode(memory::PixelBuffer& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode
