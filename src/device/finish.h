// SPDX-License-Identifier: Apache-2.0
#pragma once

// Device work on a batch after its transfer: computes elements from image bytes. All inputs are in the batch's memory,
// so one copy transfers everything, and no other memory must be retained.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "feedline/array.h"
#include "feedline/operation.h"

namespace feedline::device {

class ImageDecoder;
class ResidentImages;

struct Finish {
  // The images of one field. Positions are byte offsets: `to` is in the output, all others are in the filled memory.
  struct Images {
    // The device first makes rows of bytes, each from the cuda::CachedRow at the beginning of a filled row.
    struct FromResident {
      std::size_t from = 0;    // offset in the filled memory
      std::size_t stride = 0;  // bytes between rows
      std::uint64_t rows = 0;  // including those that are only mixed into others
    };
    std::size_t from = 0;  // rows of (height, width, channels) bytes; with from_resident: offset in the scratch memory
    std::optional<FromResident> from_resident;
    std::size_t to = 0;  // rows in `layout`
    std::uint64_t rows = 0;
    Size size;
    int channels = 3;
    Layout layout = Layout::kNchw;
    DType dtype = DType::kFloat32;
    std::size_t tables = 0;            // (channels, 256) elements: the value of each byte; unused for uint8
    std::optional<std::size_t> mixed;  // a cuda::MixedRow for each row; nullopt if nothing is mixed
    // A cuda::PixelRow for each filled row, and the cuda::Rectangles that they refer to; nullopt if there are no
    // rectangles.
    std::optional<std::size_t> inputs;
    std::size_t rectangles = 0;
  };

  std::size_t made_bytes = 0;  // size of the output; a multiple of Allocator::kAlignment
  std::vector<Images> images;
  std::size_t scratch_bytes = 0;             // for rows made from cached images; after the filled memory
  std::shared_ptr<ResidentImages> resident;  // of the same device; nullptr if no row uses cached images
  // The decoder, if rows use decoded images; this batch consumes the images for its rows.
  std::shared_ptr<ImageDecoder> decoded;
};

}  // namespace feedline::device
