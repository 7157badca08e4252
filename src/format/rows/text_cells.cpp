// SPDX-License-Identifier: Apache-2.0
#include "format/rows/text_cells.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "memory/number.h"
#include "text/utf8.h"

namespace feedline::format {
namespace {

struct TextRange {
  std::int64_t begin = 0, end = 0;
};

template <typename Offset>
TextRange text_range(const TextCells::Chunk& chunk, std::uint64_t row) {
  Offset ends[2];
  std::memcpy(ends, chunk.offsets + row * sizeof(Offset), sizeof ends);
  return {ends[0], ends[1]};
}

TextRange text_range(const TextCells::Chunk& chunk, std::uint64_t row) {
  return chunk.are_wide ? text_range<std::int64_t>(chunk, row) : text_range<std::int32_t>(chunk, row);
}

bool is_inside_text(const TextRange& range, std::string_view text) {
  return range.begin >= 0 && range.begin <= range.end && static_cast<std::uint64_t>(range.end) <= text.size();
}

std::string_view within(std::string_view text, const TextRange& range) {
  return text.substr(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin));
}

struct TextView {
  static constexpr std::size_t kBytes = 16;
  static constexpr std::int32_t kMostInline = 12;  // maximum characters inside a view

  TextView(const TextCells::ViewChunk& chunk, std::uint64_t row) : at(chunk.views + row * kBytes) {
    std::int32_t parts[4];  // length, first characters, buffer number, offset in the buffer
    std::memcpy(parts, at, sizeof parts);
    length = parts[0];
    buffer = parts[2];
    offset = parts[3];
  }
  TextRange range() const { return {offset, std::int64_t{offset} + length}; }

  const std::byte* at;
  std::int32_t length, buffer, offset;
};

std::string_view viewed(const TextCells::ViewChunk& chunk, std::uint64_t row) {
  const TextView view(chunk, row);
  if (view.length <= TextView::kMostInline)
    return {reinterpret_cast<const char*>(view.at) + sizeof view.length, static_cast<std::size_t>(view.length)};
  return within(chunk.buffers[static_cast<std::size_t>(view.buffer)], view.range());
}

std::unexpected<Error> damaged_text(std::uint64_t row, const std::string& how) {
  return data_error("row " + std::to_string(row) + ": damaged Arrow text: " + how +
                        "; if the table comes from a file, write the file again",
                    "");
}

std::unexpected<Error> outside_text(std::uint64_t row, const TextRange& range, std::string_view text) {
  return damaged_text(row, "bytes " + std::to_string(range.begin) + " to " + std::to_string(range.end) + " of " +
                               std::to_string(text.size()) + " bytes");
}

struct CheckText {
  Result<void> operator()(const std::vector<TextCells::Chunk>& chunks) const {
    std::uint64_t first = 0;
    for (const TextCells::Chunk& chunk : chunks) {
      for (std::uint64_t row = first; row < chunk.end; ++row)
        if (const TextRange range = text_range(chunk, row - first); !is_inside_text(range, chunk.data))
          return outside_text(row, range, chunk.data);
      first = chunk.end;
    }
    return {};
  }
  Result<void> operator()(const std::vector<TextCells::ViewChunk>& chunks) const {
    std::uint64_t first = 0;
    for (const TextCells::ViewChunk& chunk : chunks) {
      for (std::uint64_t row = first; row < chunk.end; ++row) {
        const TextView view(chunk, row - first);
        if (view.length < 0) return damaged_text(row, std::to_string(view.length) + " bytes");
        if (view.length <= TextView::kMostInline) continue;
        if (view.buffer < 0 || static_cast<std::size_t>(view.buffer) >= chunk.buffers.size())
          return damaged_text(row,
                              "buffer " + std::to_string(view.buffer) + " of " + std::to_string(chunk.buffers.size()));
        const std::string_view text = chunk.buffers[static_cast<std::size_t>(view.buffer)];
        if (!is_inside_text(view.range(), text)) return outside_text(row, view.range(), text);
      }
      first = chunk.end;
    }
    return {};
  }
  // The other forms have no offsets.
  Result<void> operator()(const auto& /*form*/) const { return {}; }
};

// Returns the chunk that contains the row, and makes the row relative to the chunk.
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
    return within(chunk.data, text_range(chunk, at));
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

namespace feedline {

Result<void> check(const TextCells& cells) { return std::visit(format::CheckText(), cells.form); }

}  // namespace feedline
