// SPDX-License-Identifier: Apache-2.0
#include "decode/decode_cost.h"

#include <algorithm>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/image_formats.h"

namespace feedline::decode {
namespace {

constexpr DecodeCosts kForeign{100, 10, 10};  // always decodes the whole image, so one call is cheaper than several

}  // namespace

double decode_cost(const ImageHeader& header, std::size_t bytes, const Box& region) {
  const ImageCodec* const codec = header.format->codec;
  const DecodeCosts& costs = codec == nullptr ? kForeign : codec->costs;
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
