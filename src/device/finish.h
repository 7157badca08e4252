// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device makes of a batch once it is there: elements of the bytes of images. All that it needs beside the bytes
// comes in the batch's own memory, so one copy brings everything, and nothing has to be kept for it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "feedline/array.h"
#include "feedline/operation.h"

namespace feedline::device {

struct Finish {
  // The images of one field. Places are bytes from the beginning: `from`, `tables` and `mixed` of what was filled, `to`
  // of what is made.
  struct Images {
    std::size_t from = 0;  // rows of (height, width, channels) bytes
    std::size_t to = 0;    // rows in `layout`
    std::uint64_t rows = 0;
    Size size;
    int channels = 3;
    Layout layout = Layout::kNchw;
    DType dtype = DType::kFloat32;
    std::size_t tables = 0;            // (channels, 256) elements: what becomes of a byte
    std::optional<std::size_t> mixed;  // a cuda::MixedRow for each row; nullopt: nothing is mixed
  };

  std::size_t made_bytes = 0;  // of all that is made; a multiple of Allocator::kAlignment
  std::vector<Images> images;
};

}  // namespace feedline::device
