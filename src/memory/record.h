// SPDX-License-Identifier: Apache-2.0
#pragma once

// One stored sample as a format hands it over: the fields' raw bytes, or integers already parsed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/pixels.h"
#include "memory/sample_limit.h"

namespace feedline::memory {

// A growable byte buffer whose growth does not clear (std::vector would write every byte first).
class ByteBuffer {
 public:
  std::size_t capacity() const { return capacity_; }
  const std::byte* data() const { return data_.get(); }
  // As resize(), for a size that a file or a header claims: kData where it is over `most`, or more than there is
  // memory.
  Result<std::span<std::byte>> make_room(std::uint64_t bytes, std::uint64_t most);
  // Contents are lost when it grows. Requires: a size of our own, which there is memory for.
  std::span<std::byte> resize(std::size_t bytes) {
    if (bytes > capacity_) {
      data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {data_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0;
};

// The image for which boxes, points and labels were made, if their sample's image has an EXIF orientation.
struct ImageFrame {
  std::uint8_t orientation = 1;  // EXIF, 1 to 8; 1: the stored and the turned image are the same
  bool is_turned = false;        // were they made for the turned image? Else for the stored one
  int width = 0, height = 0;     // of the stored image
};

// Filled by format, read by decode. A thread keeps one and reuses it.
struct Record {
  struct Field {
    std::span<const std::byte> bytes;  // image fields: into `storage`, or into a mapped shard
    std::int64_t value = 0;            // integer fields
    PixelView pixels = {};             // image fields that are stored decoded, in place of `bytes`
    bool absent = false;               // the sample lacks the field, and may
    std::optional<ArraySpec> array{};  // arrays, boxes and points whose numbers `bytes` are, without a file around them
    ImageFrame frame = {};             // boxes, points and labels
  };
  std::vector<Field> fields;        // in the order of Format::fields()
  ByteBuffer storage;               // owns the bytes that were read
  std::vector<ByteBuffer> more;     // likewise, where they lay in several objects: those behind the first
  std::string name;                 // room for a format to put the name of a file together
  std::shared_ptr<const void> pin;  // keeps a mapped shard alive while `bytes` points into it
  std::size_t bytes_read = 0;       // for telemetry
  // Set by whoever owns the record: formats bring no sample of more stored bytes into memory, see sample_limit.h.
  std::uint64_t most_bytes = kLeastSampleBytes;
};

}  // namespace feedline::memory
