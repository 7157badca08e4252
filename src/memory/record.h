// SPDX-License-Identifier: Apache-2.0
#pragma once

// One stored sample as a format hands it over: the fields' raw bytes, or integers already parsed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace feedline::memory {

// A growable byte buffer whose growth does not clear (std::vector would write every byte first).
class ByteBuffer {
 public:
  // Contents are lost when it grows.
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

// Filled by format, read by decode. A thread keeps one and reuses it.
struct Record {
  struct Field {
    std::span<const std::byte> bytes;  // image fields: into `storage`, or into a mapped shard
    std::int64_t value = 0;            // integer fields
  };
  std::vector<Field> fields;        // in the order of Format::fields()
  ByteBuffer storage;               // owns the bytes that were read
  std::string name;                 // room for a format to put the name of a file together
  std::shared_ptr<const void> pin;  // keeps a mapped shard alive while `bytes` points into it
  std::size_t bytes_read = 0;       // for telemetry
};

}  // namespace feedline::memory
