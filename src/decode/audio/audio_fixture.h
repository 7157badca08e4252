// SPDX-License-Identifier: Apache-2.0
#pragma once

// Audio files in memory, for tests.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace feedline::decode {

inline std::span<const std::byte> bytes_of(const std::string& file) { return std::as_bytes(std::span(file)); }

inline std::string number_bytes(std::uint64_t value, int bytes, bool big_endian = false) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * (big_endian ? bytes - 1 - i : i)));
  return text;
}

struct WavFixture {
  std::uint32_t code = 1, channels = 1, rate = 16000, bits = 16;
  std::string data = {};
  bool is_extensible = false;
  std::int64_t stated_bytes = -1;  // of the data; -1: the true number
  std::string riff = "RIFF";
  std::string before_data = {};  // further chunks
  std::string after_data = {};

  std::string file() const {
    const std::uint32_t sample_bytes = (bits + 7) / 8;
    std::string format = number_bytes(is_extensible ? 0xFFFE : code, 2) + number_bytes(channels, 2) +
                         number_bytes(rate, 4) + number_bytes(rate * channels * sample_bytes, 4) +
                         number_bytes(channels * sample_bytes, 2) + number_bytes(bits, 2);
    if (is_extensible)
      format += number_bytes(22, 2) + number_bytes(bits, 2) + number_bytes(0, 4) + number_bytes(code, 2) +
                std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
    const std::uint64_t stated = stated_bytes < 0 ? data.size() : static_cast<std::uint64_t>(stated_bytes);
    const std::string body = "WAVE" + before_data + "fmt " + number_bytes(format.size(), 4) + format + "data" +
                             number_bytes(stated, 4) + data + after_data;
    const bool is_streamed = stated_bytes >= 0 && stated != data.size();
    return riff + number_bytes(is_streamed ? stated : body.size(), 4) + body;
  }
};

inline std::string samples_16(std::initializer_list<int> samples, bool big_endian = false) {
  std::string data;
  for (const int sample : samples) data += number_bytes(static_cast<std::uint16_t>(sample), 2, big_endian);
  return data;
}

}  // namespace feedline::decode
