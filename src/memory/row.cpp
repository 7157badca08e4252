// SPDX-License-Identifier: Apache-2.0
#include "memory/row.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace feedline::memory {
namespace {

// Returns the capacity for a row of this size, one of eight sizes per power of two, so that an item does not grow
// repeatedly for rows of slightly increasing size.
std::uint64_t roomy(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 64, kSteps = 8, kLargest = std::uint64_t{1} << 62;
  if (bytes > kLargest) return bytes;
  const std::uint64_t step = std::bit_floor(std::max(bytes, kLeast)) / kSteps;
  return (std::max(bytes, kLeast) + step - 1) / step * step;
}

}  // namespace

std::span<std::byte> ListItem::take(const Shape& row, DType dtype) {
  shape = row;
  size = ArraySpec{dtype, row}.bytes();
  absent = false;
  end_loan();
  return bytes.resize(size > bytes.capacity() ? roomy(size) : size).first(size);
}

Result<std::span<std::byte>> ListItem::make_room(const Shape& row, DType dtype, std::uint64_t most) {
  clear();
  std::uint64_t wanted = size_of(dtype);
  for (const std::int64_t extent : row)
    if (extent < 0 || __builtin_mul_overflow(wanted, static_cast<std::uint64_t>(extent), &wanted))
      return data_error("the shape " + row.to_string() + " is not valid for an array", "storage");
  if (wanted > most) return too_large(wanted, most);
  FEEDLINE_TRY(const auto room, bytes.make_room(wanted > bytes.capacity() ? roomy(wanted) : wanted, roomy(wanted)));
  shape = row;
  size = wanted;
  return room.first(wanted);
}

void ListItem::lend(const ArrayView& row, std::shared_ptr<void> memory) {
  shape = row.spec.shape;
  size = row.spec.bytes();
  absent = false;
  lent_ = std::move(memory);
  lent_data_ = row.data;
}

void ListItem::clear(bool is_absent) {
  end_loan();
  shape = Shape{0};
  size = 0;
  absent = is_absent;
}

}  // namespace feedline::memory
