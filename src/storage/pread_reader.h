// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "storage/file_descriptor.h"
#include "storage/local_storage.h"
#include "storage/reader.h"

namespace feedline::storage {

// Reads a local file with pread(), and holds its descriptor.
class PreadReader final : public Reader {
 public:
  PreadReader(std::string name, FileDescriptor fd, SystemReads reads);

  Result<ObjectStat> stat() const override;
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  int descriptor() const override { return fd_.get(); }
  const std::string& name() const override { return name_; }

 private:
  std::string name_;
  FileDescriptor fd_;
  SystemReads reads_;
};

}  // namespace feedline::storage
