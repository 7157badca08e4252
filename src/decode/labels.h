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

// A thread keeps one and uses it for every sample. Not for several threads at once.
class LabelDecoder {
 public:
  LabelDecoder();
  ~LabelDecoder();
  LabelDecoder(LabelDecoder&&) noexcept;
  LabelDecoder& operator=(LabelDecoder&&) noexcept;

  // Reads the header and holds on to `bytes` until decode(). kData: no PNG, or one in colour.
  Result<LabelHeader> open(std::span<const std::byte> bytes);
  // All labels of the opened image, in rows of `out`, whose channels are the bytes of one. Requires: open() succeeded.
  Result<void> decode(memory::PixelBuffer& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline::decode
