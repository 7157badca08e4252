// SPDX-License-Identifier: Apache-2.0
#pragma once

// One sample in a pixel file:
//
//     0    8  bytes of the record, a multiple of 64
//     8    8  XXH3-64 of all that follows, keyed by the sample's index
//     16   4  bytes of the key
//     20   4  fields
//     24      per field 24 bytes: a number, or where its bytes begin in the record; width, height, channels (4 each),
//             4 bytes that are 1 where the sample does not have the field
//             the key
//             per image its rows, top to bottom, 8-bit channels interleaved, no gaps; begins at a multiple of 64
//             per mask likewise, the bytes of a label, 1 or 2, in place of channels
//             per field of another kind its stored bytes, whose number stands at width (low half) and height
//             at least memory::PixelBuffer::kRowSlack bytes, so that kernels may read whole vectors at an image's end

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "memory/record.h"

namespace feedline::format {

struct PixelRecordHead {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t fields = 0;
};

constexpr std::uint64_t kRecordAlignment = 64;

// Puts a record together. A thread keeps one and reuses its memory.
class PixelRecordBuilder {
 public:
  // The fields follow, each once, in the format's order but where begin_field() says another one.
  void begin(std::uint64_t sample, std::string_view key, std::size_t fields);
  void begin_field(std::size_t field) { field_ = field; }
  void add_absent();
  void add_integer(std::int64_t value);
  // Room for the pixels, or for the labels of a mask, of so many bytes each; valid until the next call.
  std::span<std::byte> add_image(int width, int height, int channels);
  void add_bytes(std::span<const std::byte> bytes);
  // The whole record; valid until begin().
  std::span<const std::byte> finish();

 private:
  void grow(std::uint64_t bytes);
  template <typename Field>
  void put_field(const Field& field);

  std::uint64_t sample_ = 0;
  std::size_t field_ = 0, added_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::byte> record_;
};

// Does the checksum match? Requires: a record's head, and as many bytes as it says.
bool is_intact(std::span<const std::byte> record, std::uint64_t sample);
// Views of the fields, into the record. kData: it is not laid out as drawn above, or has other fields.
Result<void> read_record(std::span<const std::byte> record, std::span<const FieldDescription> fields,
                         memory::Record& out);
// Empty where the record is not laid out as drawn above.
std::string_view key_of(std::span<const std::byte> record);

}  // namespace feedline::format
