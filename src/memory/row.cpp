// SPDX-License-Identifier: Apache-2.0
#include "memory/row.h"

namespace feedline::memory {

std::span<std::byte> ListItem::take(const Shape& row, DType dtype) {
  shape = row;
  size = ArraySpec{dtype, row}.bytes();
  absent = false;
  return bytes.resize(size);
}

Result<std::span<std::byte>> ListItem::make_room(const Shape& row, DType dtype, std::uint64_t most) {
  clear();
  std::uint64_t wanted = size_of(dtype);
  for (const std::int64_t extent : row)
    if (extent < 0 || __builtin_mul_overflow(wanted, static_cast<std::uint64_t>(extent), &wanted))
      return data_error("the shape " + row.to_string() + " is no array's", "storage");
  FEEDLINE_TRY(const auto room, bytes.make_room(wanted, most));
  shape = row;
  size = room.size();
  return room;
}

void ListItem::clear(bool is_absent) {
  shape = Shape{0};
  size = 0;
  absent = is_absent;
}

}  // namespace feedline::memory
