// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the orientation of an image from its EXIF data (tag 0x0112 of JEITA CP-3451) and rotates images accordingly.

#include <cstddef>
#include <span>

#include "decode/decoder.h"
#include "memory/pixels.h"

namespace feedline::decode {

// The pixel at (x, y) of the rotated image is the stored pixel at (y, x) if `transposes`, else at (x, y). If `flips_x`
// or `flips_y` is set, that coordinate is counted from the opposite edge.
struct Orientation {
  bool transposes = false;
  bool flips_x = false;  // of the stored image
  bool flips_y = false;

  bool is_stored() const { return !transposes && !flips_x && !flips_y; }
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

// Converts an EXIF value, 1 to 8. Any other value means 1, as stored.
Orientation orientation_of(int number);
// Returns the orientation that reverses this one.
int inverse_orientation(int number);
// Returns the EXIF orientation of the file, 1 to 8, or 0 if unknown. The orientation is 1 if the tag is missing or
// invalid, or the format has no codec (see ForeignDecoder::orientation()).
int exif_orientation(const ImageFormat& format, std::span<const std::byte> file);
// Returns the orientation of the file, or 1 (as stored) if the tag is missing or invalid.
Orientation stored_orientation(const ImageFormat& format, std::span<const std::byte> file);

// Maps a region of the rotated image to the stored image. stored: the size of the whole stored image.
Box stored_region(const Orientation& orientation, const Box& region, Size stored);
// Requires: `out` has the rotated size and as many channels as `stored`.
void turn(const Orientation& orientation, memory::PixelView stored, memory::PixelBuffer& out);

}  // namespace feedline::decode
