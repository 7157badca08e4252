// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads structs in Thrift's compact protocol (thrift-compact-protocol.md). Never reads out of bounds, even if the data
// is damaged.
//
//     field   a byte: the difference of its id from the previous one (0: the id follows, zigzag) and its type; 0: the end
//     list    a byte: number of elements (15: a varint follows) and their type
//     number  a varint, zigzag; text: its length as a varint, then its bytes

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::format {

enum class CompactType : std::uint8_t {
  kStop,
  kTrue,
  kFalse,
  kByte,
  kInt16,
  kInt32,
  kInt64,
  kDouble,
  kBinary,
  kList,
  kSet,
  kMap,
  kStruct,
};

// The bytes must outlive the reader. If a value extends past the end of the bytes, it is read as 0 or an empty string,
// and is_damaged() becomes true.
class CompactReader {
 public:
  explicit CompactReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool is_damaged() const { return damaged_; }
  std::span<const std::byte> rest() const { return rest_; }
  // Reads a whole struct. For each field, calls `take(id, type)`, which reads the value and returns true, or returns
  // false to skip it.
  template <typename Take>
  void fields(const Take& take) {
    if (++depth_ > kDeepest) return fail();
    std::int64_t id = 0;
    for (CompactType type; (type = next_field(id)) != CompactType::kStop;)
      if (!take(id, type)) skip(type);
    --depth_;
  }
  // Reads a list. `take(type)` reads an element and returns true, or returns false to skip it.
  template <typename Take>
  void items(const Take& take) {
    CompactType type = CompactType::kStop;
    const std::uint64_t count = list(type);
    for (std::uint64_t i = 0; i < count && !damaged_; ++i)
      if (!take(type)) skip_item(type);
  }
  std::int64_t integer();
  std::string_view text();

 private:
  static constexpr int kDeepest = 32;  // maximum nesting depth

  void fail();
  std::uint64_t varint();
  std::uint8_t byte();
  CompactType next_field(std::int64_t& id);
  std::uint64_t list(CompactType& type);
  void skip(CompactType type);
  void skip_item(CompactType type);
  void drop(std::uint64_t bytes);

  std::span<const std::byte> rest_;
  int depth_ = 0;
  bool damaged_ = false;
};

}  // namespace feedline::format
