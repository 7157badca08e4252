// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/progressive/progressive_coefficients.h"

#include <cstring>

namespace feedline::decode::progressive {
namespace {

using baseline::kBlockSide;
using baseline::kBlockSize;

int blocks_for(int samples) { return (samples + kBlockSide - 1) / kBlockSide; }

}  // namespace

bool Coefficients::start(const Frame& frame, const Window& window, int group) {
  arena_.reset();
  std::array<std::size_t, kMaxComponents> masks{}, values{};
  std::size_t bytes = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(frame.components); ++c) {
    const baseline::Component& component = frame.component[c];
    Plane& plane = planes_[c];
    plane.across = blocks_for(c == 0 ? frame.width : frame.chroma_width());
    plane.down = blocks_for(c == 0 ? frame.height : frame.chroma_height());
    plane.first_column = window.first_column * component.across,
    plane.end_column = window.end_column * component.across;
    plane.first_row = window.first_row * component.down, plane.end_row = window.end_row * component.down;
    plane.groups = (plane.end_column - plane.first_column + group - 1) / group;
    plane.row_size = static_cast<std::size_t>(plane.groups * group) * kBlockSize;
    masks[c] = static_cast<std::size_t>(plane.across) * static_cast<std::size_t>(plane.down) * sizeof *plane.masks;
    values[c] = static_cast<std::size_t>(plane.end_row - plane.first_row) * plane.row_size * sizeof *plane.values;
    masks[c] = (masks[c] + memory::Arena::kAlignment - 1) / memory::Arena::kAlignment * memory::Arena::kAlignment;
    bytes += masks[c] + values[c];
  }
  auto* at = static_cast<std::byte*>(arena_.allocate(bytes));
  if (!at) return false;
  std::memset(at, 0, bytes);
  for (std::size_t c = 0; c < static_cast<std::size_t>(frame.components); ++c) {
    planes_[c].values = reinterpret_cast<std::int16_t*>(at);
    at += values[c];
    planes_[c].masks = reinterpret_cast<std::uint64_t*>(at);
    at += masks[c];
  }
  return true;
}

}  // namespace feedline::decode::progressive
