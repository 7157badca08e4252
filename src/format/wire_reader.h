// SPDX-License-Identifier: Apache-2.0
#pragma once

// One message of protocol buffers, field by field, in the wire format that
// https://protobuf.dev/programming-guides/encoding/ has: whatever the bytes are, nothing outside of them is looked at.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace feedline::format {

// A number of 7 bits a byte, taken off the front of `bytes`; nullopt: cut, or longer than 10 bytes.
std::optional<std::uint64_t> take_varint(std::span<const std::byte>& bytes);

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5 };

// The bytes must outlive it.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  // The next field; groups, which nobody writes any more, are skipped. false: there is none, or is_damaged().
  bool next();
  bool is_damaged() const { return damaged_; }
  std::uint32_t number() const { return number_; }
  bool is(std::uint32_t number, WireType type) const { return number_ == number && type_ == type; }
  // Of kLength its content, of the fixed types their 4 or 8 bytes; of kVarint the bytes of the number.
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
