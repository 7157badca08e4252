// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an image is to be turned before it is looked at, as its EXIF says (tag 0x0112 of JEITA CP-3451), and turning it.

#include <cstddef>
#include <span>

#include "decode/decoder.h"
#include "memory/pixels.h"

namespace feedline::decode {

// The pixel at (x, y) of the turned image is the stored one at (y, x) where it `transposes`, else at (x, y), each
// counted from the other end where it `flips`.
struct Orientation {
  bool transposes = false;
  bool flips_x = false;  // of the stored image
  bool flips_y = false;

  bool is_stored() const { return !transposes && !flips_x && !flips_y; }
  friend bool operator==(const Orientation&, const Orientation&) = default;
};

// Of what EXIF has, 1 to 8; anything else is as 1, as it is stored.
Orientation orientation_of(int number);
// The orientation that turns such an image back.
int inverse_orientation(int number);
// What the file's EXIF says: 1 to 8, or 0 for "not known"; 1 where it says nothing, or nothing that makes sense.
int exif_orientation(ImageFormat format, std::span<const std::byte> file);
// Of that; as it is stored where it says nothing, or nothing that makes sense.
Orientation stored_orientation(ImageFormat format, std::span<const std::byte> file);

// The region of the stored image that a region of the turned one comes from. stored: the size of all of it.
Box stored_region(const Orientation& orientation, const Box& region, Size stored);
// Requires: `out` has the turned size and the same number of channels, 1 to 3.
void turn(const Orientation& orientation, memory::PixelView stored, memory::PixelBuffer& out);

}  // namespace feedline::decode
