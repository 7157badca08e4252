// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "storage/local_file.h"
#include "storage/reader.h"

namespace feedline::storage {

// A local file that is mapped read-only. The reader holds no descriptor, so thousands of shards do not exceed the limit
// on open files. Accessing a mapped page beyond the end of a truncated file raises SIGBUS. Therefore, view() and
// read_at() first check the file's size, and fault the pages in with a call that reports errors.
class MappedReader final : public Reader {
 public:
  static Result<std::unique_ptr<Reader>> map(std::string name, OpenFile file);
  ~MappedReader() override;
  MappedReader(const MappedReader&) = delete;
  MappedReader& operator=(const MappedReader&) = delete;

  Result<ObjectStat> stat() const override;
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override;
  std::span<const std::byte> mapping() const override { return {data_, bytes_}; }
  const std::string& name() const override { return name_; }

 private:
  MappedReader(std::string name, std::byte* data, const struct ::stat& status);
  Result<void> check_not_shrunk() const;
  Result<void> bring_in(std::uint64_t offset, std::size_t bytes) const;

  std::string name_;
  std::byte* data_;  // nullptr for an empty file, which cannot be mapped
  std::size_t bytes_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace feedline::storage
