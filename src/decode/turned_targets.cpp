// SPDX-License-Identifier: Apache-2.0
#include "decode/turned_targets.h"

#include <utility>

#include "base/check.h"

namespace feedline::decode {
namespace {

template <typename Number>
Number mirrored(Number value, int from) {
  return static_cast<Number>(from) - value;
}

// axis: 0 is x, 1 is y.
template <typename Number>
void mirror(std::span<Number> box, std::size_t axis, BoxFormat format, int side) {
  Number& low = box[axis];
  Number& other = box[axis + 2];
  switch (format) {
    case BoxFormat::kXyxy:
      low = mirrored(low, side);
      other = mirrored(other, side);
      std::swap(low, other);
      return;
    case BoxFormat::kXywh:
      low = mirrored(static_cast<Number>(low + other), side);
      return;
    case BoxFormat::kCxcywh:
      low = mirrored(low, side);
      return;
  }
}

}  // namespace

bool needs_turn(const memory::ImageFrame& frame, bool is_turned) {
  return frame.orientation != 1 && frame.is_turned != is_turned;
}

FrameTurn turn_of(const memory::ImageFrame& frame) {
  const Orientation forward = orientation_of(frame.orientation);
  const Size stored{frame.height, frame.width};
  if (!frame.is_turned) return {forward, stored};
  return {orientation_of(inverse_orientation(frame.orientation)),
          forward.transposes ? Size{stored.width, stored.height} : stored};
}

Size size_after(const FrameTurn& turn) {
  return turn.orientation.transposes ? Size{turn.from.width, turn.from.height} : turn.from;
}

template <typename Number>
void turn_boxes(const FrameTurn& turn, BoxFormat format, std::span<Number> numbers) {
  FEEDLINE_CHECK(numbers.size() % 4 == 0);
  const Orientation& o = turn.orientation;
  for (; !numbers.empty(); numbers = numbers.subspan(4)) {
    const std::span<Number> box = numbers.first(4);
    if (o.flips_x) mirror(box, 0, format, turn.from.width);
    if (o.flips_y) mirror(box, 1, format, turn.from.height);
    if (!o.transposes) continue;
    std::swap(box[0], box[1]);
    std::swap(box[2], box[3]);
  }
}

template <typename Number>
void turn_points(const FrameTurn& turn, std::span<Number> numbers) {
  FEEDLINE_CHECK(numbers.size() % 2 == 0);
  const Orientation& o = turn.orientation;
  for (; !numbers.empty(); numbers = numbers.subspan(2)) {
    if (o.flips_x) numbers[0] = mirrored(numbers[0], turn.from.width - 1);
    if (o.flips_y) numbers[1] = mirrored(numbers[1], turn.from.height - 1);
    if (o.transposes) std::swap(numbers[0], numbers[1]);
  }
}

template void turn_boxes(const FrameTurn&, BoxFormat, std::span<float>);
template void turn_boxes(const FrameTurn&, BoxFormat, std::span<std::int64_t>);
template void turn_points(const FrameTurn&, std::span<float>);
template void turn_points(const FrameTurn&, std::span<std::int64_t>);

}  // namespace feedline::decode
