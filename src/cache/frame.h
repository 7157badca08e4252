// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a table that a cache keeps lies in its file and, mapped or read, in memory. Little-endian.
//
//      0  8       magic: what it is
//      8  8       format: tables with another one are another version's
//     16  8 x n   numbers
//         ...     sections, each padded to 8 with zeros
//     -8  8       XXH3-64 of everything before

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "memory/record.h"

namespace feedline::cache {

static_assert(std::endian::native == std::endian::little, "tables are read in place");

struct FrameKind {
  std::uint64_t magic = 0;
  std::uint64_t format = 0;
};

// Is it of this kind, by its first bytes, and of another version's format?
bool is_foreign(std::span<const std::byte> file, FrameKind kind);
// Does the checksum at its end match? It says nothing about whether the numbers make sense.
bool is_undamaged(std::span<const std::byte> file);

// Puts a table together. Requires: what is added stays as it is until write().
class FrameBuilder {
 public:
  FrameBuilder(FrameKind kind, std::initializer_list<std::uint64_t> numbers);
  template <typename Values>
  void add(const Values& values) {
    sections_.push_back(std::as_bytes(std::span(values)));
  }
  // The whole file, in `buffer`.
  std::span<std::byte> write(memory::ByteBuffer& buffer) const;

 private:
  std::vector<std::uint64_t> head_;
  std::vector<std::span<const std::byte>> sections_;
};

// Takes a table apart. Whatever its bytes are, nothing outside of them is looked at: where something does not fit, it
// and all that follows is empty, and is_whole() says so.
class FrameReader {
 public:
  FrameReader(std::span<const std::byte> file, FrameKind kind, std::size_t numbers);
  // Requires: i < numbers.
  std::uint64_t number(std::size_t i) const;
  std::uint64_t count(std::size_t i);  // a number of things: one that no file could hold does not fit
  template <typename Value>
  std::span<const Value> take(std::uint64_t count) {
    return {reinterpret_cast<const Value*>(section(count, sizeof(Value))), fits_ ? static_cast<std::size_t>(count) : 0};
  }
  // All fitted, and nothing is left over.
  bool is_whole() const;

 private:
  const std::byte* section(std::uint64_t count, std::size_t each);

  std::span<const std::byte> file_;
  std::size_t next_ = 0;
  bool fits_ = false;
};

}  // namespace feedline::cache
