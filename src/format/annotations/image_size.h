// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::format {

struct ImageSize {
  int width = 0, height = 0;
};

// The size of a JPEG, PNG or WebP image by its first bytes, without a decoder: what boxes are multiplied by that are
// stored as shares of it. Whether the rest is sound is seen when it is decoded. kData: none of these, or cut before it
// says its size.
Result<ImageSize> size_of_image(std::span<const std::byte> file);

}  // namespace feedline::format
