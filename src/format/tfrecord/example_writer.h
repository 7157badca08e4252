// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes tf.train.Example messages and TFRecord files byte by byte for tests.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/tfrecord/record_frame.h"

namespace feedline::format {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string tag(std::uint32_t number, unsigned type) { return varint(std::uint64_t{number} << 3 | type); }
// Returns a field of wire type 2: bytes, text, a message or packed numbers.
inline std::string field(std::uint32_t number, std::string_view content) {
  return tag(number, 2) + varint(content.size()) + std::string(content);
}

template <typename Number>
std::string raw(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Writes Feature messages.
inline std::string bytes_feature(std::initializer_list<std::string_view> values) {
  std::string list;
  for (const auto value : values) list += field(1, value);
  return field(1, list);
}
inline std::string floats_feature(const std::vector<float>& values, bool packed = true) {
  std::string list;
  for (const float value : values) list += packed ? raw(value) : tag(1, 5) + raw(value);
  return field(2, packed ? field(1, list) : list);
}
inline std::string ints_feature(const std::vector<std::int64_t>& values, bool packed = true) {
  std::string list;
  for (const std::int64_t value : values)
    list += (packed ? std::string() : tag(1, 0)) + varint(static_cast<std::uint64_t>(value));
  return field(3, packed ? field(1, list) : list);
}

using NamedFeatures = std::vector<std::pair<std::string, std::string>>;

// Writes a map entry with a message as its value.
inline std::string entry(std::string_view name, std::string_view value) {
  return field(1, field(1, name) + field(2, value));
}
inline std::string features_message(const NamedFeatures& features) {
  std::string message;
  for (const auto& [name, feature] : features) message += entry(name, feature);
  return message;
}
inline std::string example(const NamedFeatures& features) { return field(1, features_message(features)); }
// `lists` contains names, each with the features of its steps.
inline std::string sequence_example(const NamedFeatures& context,
                                    const std::vector<std::pair<std::string, std::vector<std::string>>>& lists) {
  std::string message;
  for (const auto& [name, steps] : lists) {
    std::string list;
    for (const std::string& step : steps) list += field(1, step);
    message += entry(name, list);
  }
  return example(context) + field(2, message);
}

inline std::string record_of(std::string_view data) {
  const std::string length = raw<std::uint64_t>(data.size());
  return length + raw(masked_crc(std::as_bytes(std::span(length)))) + std::string(data) +
         raw(masked_crc(std::as_bytes(std::span(data))));
}
inline std::string records_of_all(const std::vector<std::string>& data) {
  std::string file;
  for (const std::string& one : data) file += record_of(one);
  return file;
}

}  // namespace feedline::format
