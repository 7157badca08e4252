// SPDX-License-Identifier: Apache-2.0
#pragma once

// A region of an image as luma (Y) and chroma (Cb, Cr; ITU-T T.871) samples, possibly at a lower resolution than its
// pixels. Passed from decode to transform if an operation chain supports it (fidelity "fast").

#include <array>

#include "memory/pixels.h"

namespace feedline::memory {

// Relates a plane's samples to the image's pixels, in one direction. Pixel x is computed from these samples:
// - if not halved, from sample x,
// - if halved, from 3/4 of sample x / 2, and 1/4 of the next sample on the side of x (JPEG's fancy upsampling) that is
//   inside the image.
// A sample of the plane is approximately the mean of 2^shift of these samples.
struct PlaneAxis {
  int first = 0;  // the plane's sample that is the buffer's first
  int size = 0;   // of the image, in samples before `shift`
  bool halved = false;
  int shift = 0;
  friend bool operator==(const PlaneAxis&, const PlaneAxis&) = default;
};

struct Plane {
  PixelBuffer samples;  // one channel
  PlaneAxis x, y;
};

// Each thread reuses one object.
struct Planes {
  int count = 0;  // 1: Y, 3: Y, Cb, Cr
  std::array<Plane, 3> plane;
};

inline std::uint64_t bytes_of(const Planes& planes) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < planes.count; ++i) bytes += bytes_of(planes.plane[i].samples.view());
  return bytes;
}

// The maximum number of pixels per sample in each direction, as powers of two.
struct Coarseness {
  int brightness = 1;
  int colour = 1;
  friend bool operator==(const Coarseness&, const Coarseness&) = default;
};

}  // namespace feedline::memory
