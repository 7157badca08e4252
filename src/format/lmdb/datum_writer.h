// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes Caffe's Datum messages for tests.

#include <cstdint>
#include <string>
#include <string_view>

#include "format/tfrecord/example_writer.h"

namespace feedline::format {

inline std::string number_field(std::uint32_t number, std::int64_t value) {
  return tag(number, 0) + varint(static_cast<std::uint64_t>(value));
}
inline std::string extents(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return number_field(1, channels) + number_field(2, height) + number_field(3, width);
}
inline std::string encoded_datum(std::string_view image, std::int64_t label) {
  return field(4, image) + number_field(5, label) + number_field(7, 1);
}
inline std::string raw_datum(std::int64_t channels, std::int64_t height, std::int64_t width, std::string_view data,
                             std::int64_t label) {
  return extents(channels, height, width) + field(4, data) + number_field(5, label);
}

}  // namespace feedline::format
