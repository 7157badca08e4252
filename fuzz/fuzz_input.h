// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits a fuzzer's input into numbers and texts. After its end, numbers are 0 and texts are empty.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace feedline {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t bytes) : left_(reinterpret_cast<const char*>(data), bytes) {}

  bool is_empty() const { return left_.empty(); }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const char byte : take(bytes)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }
  // The first byte is the length.
  std::string_view text() { return take(number(1)); }
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return take(left_.size()); }

 private:
  std::string_view left_;
};

}  // namespace feedline
