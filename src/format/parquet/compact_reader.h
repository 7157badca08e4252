// SPDX-License-Identifier: Apache-2.0
#pragma once

// Structs in Thrift's compact protocol, as its specification (thrift-compact-protocol.md) has it: whatever the bytes
// are, nothing outside of them is looked at.
//
//     field   a byte: how far its id is from the one before (0: the id follows, zigzag), and its type; 0: the end
//     list    a byte: elements (15: they follow, a varint), and their type
//     number  a varint, zigzag; text: its bytes, a varint, then these

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

// The bytes must outlive it. Of what does not fit the numbers are 0 and the texts empty, and is_damaged() says so.
class CompactReader {
 public:
  explicit CompactReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool is_damaged() const { return damaged_; }
  std::span<const std::byte> rest() const { return rest_; }
  // Reads a struct to its end: calls `take(id, type)`, which reads the field's value and gives true, or gives false
  // without a look at it.
  template <typename Take>
  void fields(const Take& take) {
    if (++depth_ > kDeepest) return fail();
    std::int64_t id = 0;
    for (CompactType type; (type = next_field(id)) != CompactType::kStop;)
      if (!take(id, type)) skip(type);
    --depth_;
  }
  // The same of a list, whose elements `take(type)` reads.
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
  static constexpr int kDeepest = 32;  // nesting that a file can ask for

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
