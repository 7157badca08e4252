// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caffe's Datum, the message type in Caffe's LMDB files: an image with its label.
//
//     Datum { int32 channels = 1, height = 2, width = 3; bytes data = 4; int32 label = 5; repeated float float_data = 6;
//             bool encoded = 7; }
//
// `data` is an image file if `encoded` is set. Otherwise, `data` has channels x height x width bytes, one channel after
// another; three channels are in the order blue, green, red. Source: src/caffe/proto/caffe.proto,
// src/caffe/util/io.cpp.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/pixels.h"
#include "memory/record.h"

namespace feedline::format {

struct Datum {
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t label = 0;  // 0 if the message has no label, as in Caffe
  bool encoded = false;
  std::span<const std::byte> data;
  // The float values from packed and unpacked fields, possibly unaligned.
  std::vector<std::span<const std::byte>> floats;
  std::uint64_t float_count = 0;

  // Returns whether the number of bytes or floats matches the dimensions.
  bool is_whole() const;
  // Returns whether this is an uncompressed image with one or three channels.
  bool is_pixels() const { return !encoded && floats.empty() && (channels == 1 || channels == 3); }
};

// Parses a message, or returns nullopt if it is not a Datum. The bytes must outlive the result.
std::optional<Datum> parse_datum(std::span<const std::byte> message);

// Writes the pixels to `room` in the order (height, width, channels), as RGB. Fails with kData if the number of bytes
// does not match the dimensions or exceeds `most_bytes`. Requires: is_pixels().
Result<memory::PixelView> pixels_of(const Datum& datum, memory::ByteBuffer& room, std::uint64_t most_bytes);

}  // namespace feedline::format
