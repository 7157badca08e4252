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

// Reads the stored size of an image and its EXIF orientation from its header. Does not check the pixels. Fails with
// kData if Feedline does not decode the format, or if the header is truncated.
Result<memory::ImageFrame> read_frame(std::span<const std::byte> file);
// Returns the size of the image after its EXIF orientation is applied.
ImageSize turned_size(const memory::ImageFrame& frame);
// Returns the frame for annotations that specify the size of their image. If the EXIF orientation swaps the sides, the
// specified size determines whether the annotations refer to the stored or the rotated image. Otherwise returns the
// default frame, for annotations that refer to the decoded image.
memory::ImageFrame frame_by_size(std::span<const std::byte> file, const ImageSize& stated);

// Sets the frame of the fields that are transformed along with the image. Does nothing if the image is not among the
// fields.
void set_frame(std::span<const PartField> fields, const memory::ImageFrame& frame, memory::Record& record);

}  // namespace feedline::format
