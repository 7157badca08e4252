// SPDX-License-Identifier: Apache-2.0
#pragma once

// A region of an image as samples of brightness (Y) and of colour differences (Cb, Cr; ITU-T T.871), which may be fewer
// than its pixels: from decode to transform where a chain takes them (fidelity "fast").

#include <array>

#include "memory/pixels.h"

namespace feedline::memory {

// What the samples of a plane are to the image's pixels, in one direction. Pixel x is made of
//   samples of full size:  sample x
//   halved:                3/4 of sample x / 2, and 1/4 of the next one on the side where x lies (JPEG's fancy
//                          upsampling), inside the image
// and 2^shift of those samples, in turn, are one sample of the plane: their mean, nearly.
struct PlaneAxis {
  int first = 0;  // the sample of the plane that is the buffer's first
  int size = 0;   // of the image, in samples before `shift`
  bool halved = false;
  int shift = 0;
  friend bool operator==(const PlaneAxis&, const PlaneAxis&) = default;
};

struct Plane {
  PixelBuffer samples;  // one channel
  PlaneAxis x, y;
};

// A thread keeps one and reuses it.
struct Planes {
  int count = 0;  // 1: Y, 3: Y, Cb, Cr
  std::array<Plane, 3> plane;
};

inline std::uint64_t bytes_of(const Planes& planes) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < planes.count; ++i) bytes += bytes_of(planes.plane[i].samples.view());
  return bytes;
}

// How many pixels a sample may stand for in each direction: powers of two.
struct Coarseness {
  int brightness = 1;
  int colour = 1;
  friend bool operator==(const Coarseness&, const Coarseness&) = default;
};

}  // namespace feedline::memory
