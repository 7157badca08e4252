// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <cstdint>
#include <cstring>
#include <string>

namespace feedline::text {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;

// Returns the length in bytes of the character that begins here, or 0 if the bytes are not a character.
std::size_t character_at(const std::uint8_t* text, std::size_t left) {
  const std::uint8_t lead = text[0];
  const auto follows = [&](std::size_t i, std::uint8_t low, std::uint8_t high) {
    return i < left && text[i] >= low && text[i] <= high;
  };
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;  // a continuation byte, or an overlong form
  if (lead < 0xE0) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (lead < 0xF0) {
    const std::uint8_t low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;  // ED A0 ...: surrogates
    return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead > 0xF4) return 0;
  const std::uint8_t low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
  return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
}

}  // namespace

Result<void> check_utf8(std::span<const std::byte> text) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    if (std::uint64_t eight = 0; text.size() - at >= sizeof eight) {
      std::memcpy(&eight, bytes + at, sizeof eight);
      if ((eight & kHighBits) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t length = character_at(bytes + at, text.size() - at);
    if (length == 0) return data_error("not UTF-8 text: at byte " + std::to_string(at), "decode");
    at += length;
  }
  return {};
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace feedline::text
