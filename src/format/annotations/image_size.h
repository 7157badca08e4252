// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "memory/record.h"

namespace feedline::format {

struct ImageSize {
  int width = 0, height = 0;
};

// The stored size of an image and its EXIF orientation, from its header. The rest is checked when it is decoded. kData:
// not an image that Feedline decodes, or truncated before its size.
Result<memory::ImageFrame> read_frame(std::span<const std::byte> file);
// The size of the image after its EXIF orientation is applied.
ImageSize turned_size(const memory::ImageFrame& frame);
// The frame for annotations that state the size of their image. If EXIF swaps the sides, the size tells whether the
// annotations fit the stored or the rotated image. Otherwise returns the default: they fit the decoded image.
memory::ImageFrame frame_by_size(std::span<const std::byte> file, const ImageSize& stated);

// Sets the frame of fields that are transformed with the image. Does nothing if the image is not among the fields.
void set_frame(std::span<const PartField> fields, const memory::ImageFrame& frame, memory::Record& record);

}  // namespace feedline::format
