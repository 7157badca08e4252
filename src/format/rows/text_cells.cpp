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

std::string_view viewed(const TextCells::ViewChunk& chunk, std::uint64_t row) {
  constexpr std::size_t kView = 16;         // bytes of a view
  constexpr std::int32_t kMostInline = 12;  // characters that a view has room for
  const std::byte* const view = chunk.views + row * kView;
  std::int32_t parts[4];  // length, first characters, number of the buffer, offset in it
  std::memcpy(parts, view, sizeof parts);
  const auto length = static_cast<std::size_t>(parts[0]);
  if (parts[0] <= kMostInline) return {reinterpret_cast<const char*>(view) + sizeof parts[0], length};
  return {chunk.buffers[static_cast<std::size_t>(parts[2])] + parts[3], length};
}

// Returns the chunk with the row, and makes the row relative to the chunk.
template <typename Chunk>
const Chunk& chunk_of(const std::vector<Chunk>& chunks, std::uint64_t& row) {
  const auto chunk = std::ranges::upper_bound(chunks, row, {}, &Chunk::end);
  FEEDLINE_CHECK(chunk != chunks.end());
  if (chunk != chunks.begin()) row -= std::prev(chunk)->end;
  return *chunk;
}

struct Lookup {
  std::uint64_t row;
  std::string& room;

  std::string_view operator()(const TextCells::Scattered& texts) const {
    return {texts.starts[row], texts.lengths[row]};
  }
  std::string_view operator()(const std::vector<TextCells::Chunk>& chunks) const {
    std::uint64_t at = row;
    const TextCells::Chunk& chunk = chunk_of(chunks, at);
    return chunk.are_wide ? between<std::int64_t>(chunk, at) : between<std::int32_t>(chunk, at);
  }
  std::string_view operator()(const std::vector<TextCells::ViewChunk>& chunks) const {
    std::uint64_t at = row;
    const TextCells::ViewChunk& chunk = chunk_of(chunks, at);
    return viewed(chunk, at);
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
