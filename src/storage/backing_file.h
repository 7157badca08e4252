// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "feedline/error.h"
#include "storage/local_file.h"

namespace feedline::storage {

// The file that underlies a shared memory mapping, whichever library mapped it. Accessing the memory after the file was
// truncated raises SIGBUS; check() and read() return an error instead. Immutable and thread-safe. Holds no descriptor.
class BackingFile {
 public:
  // Finds the file in /proc/self/maps. Returns nullptr unless the memory is a single shared mapping of a file to which
  // its path still refers. Requires: the memory stays mapped while the result is used.
  static std::shared_ptr<const BackingFile> of(std::span<const std::byte> memory);

  const std::string& path() const { return path_; }
  std::uint64_t needed_bytes() const { return offset_ + memory_.size(); }  // size of the file that the memory requires
  // Returns whether this process can change the file through the mapping.
  bool is_writable() const { return is_writable_; }

  // kStorage: the file is too short for the memory.
  Result<void> check() const;
  // Copies a range of the memory without accessing its pages. kStorage: the file is too short, or cannot be read.
  Result<void> read(std::span<const std::byte> part, std::byte* out) const;
  // Returns a private, writable mapping of the same part of the file: a page is copied when first written, and neither
  // the file nor the memory changes. Pages that were not written reflect the file's contents. Returns nullptr if this
  // is not possible; copy the memory instead. kStorage: the file is too short.
  Result<std::shared_ptr<std::byte>> own_pages(std::span<const std::byte> part) const;

 private:
  BackingFile(std::string path, std::uint64_t offset, std::span<const std::byte> memory, bool is_writable);
  bool is_it(const struct ::stat& status) const { return status.st_dev == device_ && status.st_ino == inode_; }
  Result<void> check_size(const struct ::stat& status) const;
  // Returns nullopt if the path now refers to another file. kStorage: the file is too short.
  Result<std::optional<OpenFile>> open() const;
  std::uint64_t offset_of(std::span<const std::byte> part) const {
    return offset_ + static_cast<std::uint64_t>(part.data() - memory_.data());
  }

  const std::string path_;
  const std::uint64_t offset_;  // offset in the file of the memory's first byte
  const std::span<const std::byte> memory_;
  const bool is_writable_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace feedline::storage
