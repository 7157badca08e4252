// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caffe's Datum, the message that its LMDB files hold: an image with its label.
//
//     Datum { int32 channels = 1, height = 2, width = 3; bytes data = 4; int32 label = 5; repeated float float_data = 6;
//             bool encoded = 7; }
//
// data: an image file where `encoded`, else channels x height x width bytes, one channel after the other, of which
// three are blue, green and red. Source: src/caffe/proto/caffe.proto, src/caffe/util/io.cpp.

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
  std::int64_t label = 0;  // of one without: 0, as Caffe has it
  bool encoded = false;
  std::span<const std::byte> data;
  // Runs of floats, packed or one by one, which need not be aligned.
  std::vector<std::span<const std::byte>> floats;
  std::uint64_t float_count = 0;

  // Are there as many bytes, or floats, as the extents say?
  bool is_whole() const;
  // Is it an image that is stored decoded, of a channel or three?
  bool is_pixels() const { return !encoded && floats.empty() && (channels == 1 || channels == 3); }
};

// nullopt: it is no Datum. The bytes must outlive it.
std::optional<Datum> parse_datum(std::span<const std::byte> message);

// Pixels as RGB, channels last, in `room`. kData: there are not as many as the extents say, or more than most_bytes.
// Requires: is_pixels().
Result<memory::PixelView> pixels_of(const Datum& datum, memory::ByteBuffer& room, std::uint64_t most_bytes);

}  // namespace feedline::format
