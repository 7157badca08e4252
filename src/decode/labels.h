// SPDX-License-Identifier: Apache-2.0
#pragma once

// An image of labels, such as a segmentation mask: its numbers, not colours. They are those of
// numpy.asarray(PIL.Image.open(f)): a palette's indices, grey levels, 0 and 1 of one bit, 16-bit grey as uint16.

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

// Not thread-safe. Each thread should reuse one for all samples.
class LabelDecoder {
 public:
  LabelDecoder();
  ~LabelDecoder();
  LabelDecoder(LabelDecoder&&) noexcept;
  LabelDecoder& operator=(LabelDecoder&&) noexcept;

  // Reads the header. `bytes` must stay valid until decode(). kData if the image is not a PNG or is in colour.
  Result<LabelHeader> open(std::span<const std::byte> bytes);
  // Writes all labels of the opened image to the rows of `out`, whose channels are the bytes of one label. Requires:
  // open() succeeded.
  Result<void> decode(memory::PixelBuffer& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode
