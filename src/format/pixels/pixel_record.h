// SPDX-License-Identifier: Apache-2.0
#pragma once

// One sample in a pixel file:
//
//     0    8  bytes of the record, a multiple of 64
//     8    8  XXH3-64 of everything that follows, seeded with the sample's index
//     16   4  bytes of the key
//     20   4  fields
//     24      per field 24 bytes: a number, or the offset of its bytes in the record; width, height, channels (4 each),
//             4 bytes that are 1 if the sample lacks the field
//             the key
//             per image its rows, top to bottom, 8-bit channels interleaved, no gaps; begins at a multiple of 64
//             per mask the same, with the bytes per label, 1 or 2, in place of channels
//             per other field its stored bytes, whose number is stored at width (low half) and height
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

// Builds a record. Each thread should reuse its builder to avoid allocations.
class PixelRecordBuilder {
 public:
  // Begins a record. After begin(), add each field once, in the order of the format unless begin_field() selects
  // another field.
  void begin(std::uint64_t sample, std::string_view key, std::size_t fields);
  void begin_field(std::size_t field) { field_ = field; }
  void add_absent();
  void add_integer(std::int64_t value);
  // Returns the buffer for pixels, or for the labels of a mask, with `channels` bytes per label. The buffer is valid
  // until the next call.
  std::span<std::byte> add_image(int width, int height, int channels);
  void add_bytes(std::span<const std::byte> bytes);
  // Returns the complete record, which is valid until begin().
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

// Returns whether the checksum matches. Requires: `record` has a head, and as many bytes as the head states.
bool is_intact(std::span<const std::byte> record, std::uint64_t sample);
// Decodes the fields as views of the record. Fails with kData if the layout is invalid or the record has different
// fields.
Result<void> read_record(std::span<const std::byte> record, std::span<const FieldDescription> fields,
                         memory::Record& out);
// Returns the sample's key, or an empty string if the layout is invalid.
std::string_view key_of(std::span<const std::byte> record);

}  // namespace feedline::format
