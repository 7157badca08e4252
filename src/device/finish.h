// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device makes of a batch once it is there: elements of the bytes of images. All that it needs beside the bytes
// comes in the batch's own memory, so one copy brings everything, and nothing has to be kept for it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "feedline/array.h"
#include "feedline/operation.h"

namespace feedline::device {

class ImageDecoder;
class KeptImages;

struct Finish {
  // The images of one field. Places are bytes from the beginning: `to` of what is made, all others of what was
  // filled.
  struct Images {
    // Rows of bytes are made on the device first, by a cuda::KeptRow at the beginning of each of these rows.
    struct OfKept {
      std::size_t from = 0;    // place in what was filled
      std::size_t stride = 0;  // bytes from one to the next
      std::uint64_t rows = 0;  // with those that are mixed into others alone
    };
    std::size_t from = 0;  // rows of (height, width, channels) bytes; with of_kept: place in the scratch memory
    std::optional<OfKept> of_kept;
    std::size_t to = 0;  // rows in `layout`
    std::uint64_t rows = 0;
    Size size;
    int channels = 3;
    Layout layout = Layout::kNchw;
    DType dtype = DType::kFloat32;
    std::size_t tables = 0;            // (channels, 256) elements: what becomes of a byte; not of uint8
    std::optional<std::size_t> mixed;  // a cuda::MixedRow for each row; nullopt: nothing is mixed
    // A cuda::PixelRow for each row that is filled, and the cuda::Rectangles that they name; nullopt: nothing is
    // written over.
    std::optional<std::size_t> inputs;
    std::size_t rectangles = 0;
  };

  std::size_t made_bytes = 0;  // of all that is made; a multiple of Allocator::kAlignment
  std::vector<Images> images;
  std::size_t scratch_bytes = 0;     // of rows that are made of kept images; behind what was filled
  std::shared_ptr<KeptImages> kept;  // of the same device; nullptr: no row is made of them
  // Likewise; what it has for the rows' places goes with this batch.
  std::shared_ptr<ImageDecoder> decoded;
};

}  // namespace feedline::device
