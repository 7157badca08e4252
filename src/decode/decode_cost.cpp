// SPDX-License-Identifier: Apache-2.0
#include "decode/decode_cost.h"

#include <algorithm>

#include "base/check.h"

namespace feedline::decode {
namespace {

// Measured with bench/view_regions.cpp; accurate to 5 % on average. Every codec reads all stored bytes up to the
// region's last row, does some work for every pixel of those rows, and more for pixels inside the region. Other costs
// are negligible.
struct Costs {
  double byte;   // per byte of the file that is read
  double above;  // per pixel from the first row to the region's last one
  double pixel;  // per pixel of the region
};

constexpr Costs kJpeg{2.2, 0.06, 1.22};
constexpr Costs kPng{16.3, 0, 0.47};
constexpr Costs kWebp{53, 0.64, 1.38};
constexpr Costs kForeign{100, 10, 10};  // always decodes the whole image, so one call is cheaper than several

const Costs& costs_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return kPng;
    case ImageFormat::kWebp:
      return kWebp;
    case ImageFormat::kForeign:
      return kForeign;
    case ImageFormat::kJpeg:
      break;
  }
  return kJpeg;
}

}  // namespace

double decode_cost(const ImageHeader& header, std::size_t bytes, const Box& region) {
  const Costs& costs = costs_of(header.format);
  const double rows = region.top + region.height;
  return costs.byte * static_cast<double>(bytes) * (rows / header.height) + costs.above * rows * header.width +
         costs.pixel * region.width * region.height;
}

Box bounding_box(std::span<const Box> regions) {
  FEEDLINE_CHECK(!regions.empty());
  const Box& first = regions.front();
  int left = first.left, top = first.top, right = left + first.width, bottom = top + first.height;
  for (const Box& box : regions) {
    left = std::min(left, box.left);
    top = std::min(top, box.top);
    right = std::max(right, box.left + box.width);
    bottom = std::max(bottom, box.top + box.height);
  }
  return {left, top, right - left, bottom - top};
}

bool is_cheaper_apart(const ImageHeader& header, std::size_t bytes, std::span<const Box> regions) {
  double apart = 0;
  for (const Box& region : regions) apart += decode_cost(header, bytes, region);
  return apart < decode_cost(header, bytes, bounding_box(regions));
}

}  // namespace feedline::decode
