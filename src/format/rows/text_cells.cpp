// SPDX-License-Identifier: Apache-2.0
#include "format/rows/text_cells.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "base/check.h"
#include "memory/number.h"
#include "text/utf8.h"

namespace feedline::format {
namespace {

template <typename Offset>
std::string_view between(const TextCells::Chunk& chunk, std::uint64_t row) {
  Offset ends[2];
  std::memcpy(ends, chunk.offsets + row * sizeof(Offset), sizeof ends);
  return {chunk.data + ends[0], static_cast<std::size_t>(ends[1] - ends[0])};
}

struct Lookup {
  std::uint64_t row;
  std::string& room;

  std::string_view operator()(const TextCells::Scattered& texts) const {
    return {texts.starts[row], texts.lengths[row]};
  }
  std::string_view operator()(const std::vector<TextCells::Chunk>& chunks) const {
    const auto chunk = std::ranges::upper_bound(chunks, row, {}, &TextCells::Chunk::end);
    FEEDLINE_CHECK(chunk != chunks.end());
    const std::uint64_t first = chunk == chunks.begin() ? 0 : std::prev(chunk)->end;
    return chunk->are_wide ? between<std::int64_t>(*chunk, row - first) : between<std::int32_t>(*chunk, row - first);
  }
  std::string_view operator()(const TextCells::FixedWidth& texts) const {
    room.clear();
    const std::byte* const cell = texts.data + static_cast<std::ptrdiff_t>(row) * texts.stride;
    for (std::size_t i = 0; i < texts.characters; ++i) {
      char32_t character = 0;
      std::memcpy(&character, cell + i * sizeof character, sizeof character);
      if (character == 0) break;
      text::append_utf8(character, room);
    }
    return room;
  }
  std::string_view operator()(const TextCells::Integers& numbers) const {
    const std::byte* const cell = numbers.data + static_cast<std::ptrdiff_t>(row) * numbers.stride;
    room = memory::with_number(numbers.dtype, {cell, size_of(numbers.dtype)}, [](auto number) -> std::string {
      if constexpr (std::is_integral_v<decltype(number)>) return std::to_string(number);
      FEEDLINE_CHECK(!"an integer dtype");
    });
    return room;
  }
};

}  // namespace

std::string_view text_of(const TextCells& cells, std::uint64_t row, std::string& room) {
  FEEDLINE_CHECK(row < cells.rows);
  return std::visit(Lookup{row, room}, cells.form);
}

}  // namespace feedline::format
