// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decoding of image formats without a built-in decoder by another library: Python's Pillow, if the feedline package is
// imported.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// Must be thread-safe: called from several threads concurrently.
class ForeignImages {
 public:
  virtual ~ForeignImages() = default;

  struct Opened {
    std::string kind;  // the library's name for the format: "GIF"
    int width = 0;
    int height = 0;
    std::shared_ptr<void> image;  // in the library's representation
    int orientation = 1;          // EXIF orientation, 1 to 8; 1 if the library always rotates images of this format
    std::string depth = {};       // "16 bits", "32 bits" or "floats"; empty for 8 bits
  };
  // Reads the header of the first image; `bytes` need not outlive the call. kData if the format is not supported.
  // applies_exif: rotates the image according to its EXIF orientation.
  virtual Result<Opened> open(std::span<const std::byte> bytes, bool applies_exif) const = 0;
  // Writes the region's pixels, 8-bit with 3 channels or 1, to `out`, with rows `stride` bytes apart. kData: damaged.
  // Requires: the region is inside the image.
  virtual Result<void> decode(const Opened& opened, const Box& region, ColorMode mode, std::uint8_t* out,
                              std::size_t stride) const = 0;
};

// Sets the decoder for the whole process, replacing any other; nullptr removes it.
void read_foreign_images_by(std::shared_ptr<const ForeignImages> images);
// The number of images that this process has decoded this way, by format.
std::map<std::string, std::uint64_t> foreign_images_decoded();

}  // namespace feedline
