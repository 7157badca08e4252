// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images of kinds that the engine has no decoder for, by somebody else's library: Python's Pillow, where the package
// feedline is imported.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// Called by any thread, by several at once.
class ForeignImages {
 public:
  virtual ~ForeignImages() = default;

  struct Opened {
    std::string kind;  // what the library calls it: "GIF"
    int width = 0;
    int height = 0;
    std::shared_ptr<void> image;  // the library's own
    int orientation = 1;          // EXIF orientation, 1 to 8; 1 if the library always turns images of this kind
    std::string depth = {};       // "16 bits", "32 bits" or "floats"; empty for 8 bits
  };
  // Reads the header; `bytes` need not stay. The first image, where there are several. kData: not one that it reads.
  // applies_exif: turned as its EXIF orientation says.
  virtual Result<Opened> open(std::span<const std::byte> bytes, bool applies_exif) const = 0;
  // The region's pixels, 8-bit with 3 channels or 1: a row to `out`, the next one `stride` bytes behind it. kData:
  // damaged. Requires: the region lies inside the image.
  virtual Result<void> decode(const Opened& opened, const Box& region, ColorMode mode, std::uint8_t* out,
                              std::size_t stride) const = 0;
};

// For the whole process, in place of what was said before; nullptr: nobody reads them.
void read_foreign_images_by(std::shared_ptr<const ForeignImages> images);
// How many this process has decoded so, by kind.
std::map<std::string, std::uint64_t> foreign_images_decoded();

}  // namespace feedline
