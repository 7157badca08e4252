// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads one protocol buffer message field by field, in the wire format of
// https://protobuf.dev/programming-guides/encoding/. Never reads out of bounds, even if the message is damaged.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace feedline::format {

// Decodes a varint and removes it from the front of `bytes`. Returns nullopt if it is truncated or longer than 10
// bytes.
std::optional<std::uint64_t> take_varint(std::span<const std::byte>& bytes);

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5 };

// The bytes must outlive the reader.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  // Advances to the next field and skips groups, which are deprecated. Returns false at the end, or if the message is
  // damaged.
  bool next();
  bool is_damaged() const { return damaged_; }
  std::uint32_t number() const { return number_; }
  bool is(std::uint32_t number, WireType type) const { return number_ == number && type_ == type; }
  // Returns the bytes of the current field: the contents for kLength, 4 or 8 bytes for fixed types, and the encoded
  // number for kVarint.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  bool fail() { return damaged_ = true, false; }
  bool take_tag();
  bool take_value();
  bool skip_group();

  std::span<const std::byte> rest_, bytes_;
  std::uint32_t number_ = 0;
  WireType type_ = WireType::kVarint;
  bool damaged_ = false;
};

}  // namespace feedline::format
