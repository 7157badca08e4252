// SPDX-License-Identifier: Apache-2.0
#pragma once

// The binary format of a cached table, in its file and in memory. Little-endian.
//
//      0  8       magic: the kind of table
//      8  8       format version
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

// Returns whether the first bytes identify this kind of table in another format version.
bool is_foreign(std::span<const std::byte> file, FrameKind kind);
// Returns whether the trailing checksum matches. Does not validate the table's numbers.
bool is_undamaged(std::span<const std::byte> file);

// Builds a table. Requires: added data does not change before write().
class FrameBuilder {
 public:
  FrameBuilder(FrameKind kind, std::initializer_list<std::uint64_t> numbers);
  template <typename Values>
  void add(const Values& values) {
    sections_.push_back(std::as_bytes(std::span(values)));
  }
  // Returns the whole file, stored in `buffer`.
  std::span<std::byte> write(memory::ByteBuffer& buffer) const;

 private:
  std::vector<std::uint64_t> head_;
  std::vector<std::span<const std::byte>> sections_;
};

// Parses a table. Never reads out of bounds, whatever the input. A section that does not fit, and all sections after
// it, are empty, and is_whole() returns false.
class FrameReader {
 public:
  FrameReader(std::span<const std::byte> file, FrameKind kind, std::size_t numbers);
  // Requires: i < numbers.
  std::uint64_t number(std::size_t i) const;
  std::uint64_t count(std::size_t i);  // a count; one that is too large for any file does not fit
  template <typename Value>
  std::span<const Value> take(std::uint64_t count) {
    return {reinterpret_cast<const Value*>(section(count, sizeof(Value))), fits_ ? static_cast<std::size_t>(count) : 0};
  }
  // Returns whether all sections fit and no bytes remain.
  bool is_whole() const;

 private:
  const std::byte* section(std::uint64_t count, std::size_t each);

  std::span<const std::byte> file_;
  std::size_t next_ = 0;
  bool fits_ = false;
};

}  // namespace feedline::cache
