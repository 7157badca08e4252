// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "decode/audio/byte_source.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::pipeline {

// Identifies the contents of an object by its name and version.
std::uint64_t key_of(const storage::Storage& storage, const std::string& object, const storage::ObjectStat& stat);

// The bytes of a stored field: in memory, or read from its object in parts. Reused for the next sample by one thread.
class AudioSource final : public decode::ByteSource {
 public:
  // kStorage: the object cannot be opened. Requires: the field outlives its use.
  Result<void> open(const memory::Record::Field& stored);
  Result<void> open(const storage::Storage& storage, const std::string& object);
  void close();

  std::uint64_t size() const override { return size_; }
  Result<std::span<const std::byte>> bytes(std::uint64_t offset, std::uint64_t count) override;
  std::optional<std::uint64_t> key() const override { return key_; }
  std::uint64_t bytes_read() const { return bytes_read_; }  // from storage, since open()

 private:
  std::span<const std::byte> memory_;
  std::unique_ptr<storage::Reader> reader_;  // nullptr: in memory
  std::uint64_t size_ = 0, bytes_read_ = 0;
  std::optional<std::uint64_t> key_;
  memory::ByteBuffer buffer_;
  std::uint64_t buffered_at_ = 0, buffered_ = 0;  // the part of the object in buffer_
};

}  // namespace feedline::pipeline
