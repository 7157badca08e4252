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

// The file that backs a shared memory mapping, regardless of which library mapped the file. Accessing the memory after
// the file was truncated raises SIGBUS: check() and read() report truncation as an error. Immutable and thread-safe.
// Holds no descriptor.
class BackingFile {
 public:
  // Found in /proc/self/maps. nullptr: the memory is not a single shared mapping of a file that its path still refers
  // to. Requires: the memory stays mapped as long as the result is used.
  static std::shared_ptr<const BackingFile> of(std::span<const std::byte> memory);

  const std::string& path() const { return path_; }
  std::uint64_t needed_bytes() const { return offset_ + memory_.size(); }  // size of the file that the memory requires
  // Whether this process can change the file through the mapping.
  bool is_writable() const { return is_writable_; }

  // kStorage: the file is shorter than the memory requires.
  Result<void> check() const;
  // Copies a range of the memory without touching its pages. kStorage: the file is too short, or cannot be read.
  Result<void> read(std::span<const std::byte> part, std::byte* out) const;
  // A private, writable mapping of the same part: a page is copied when it is first written, and neither the file nor
  // the memory changes. Until then it shows the file. nullptr: this is not possible, copy it instead.
  // kStorage: the file is too short.
  Result<std::shared_ptr<std::byte>> own_pages(std::span<const std::byte> part) const;

 private:
  BackingFile(std::string path, std::uint64_t offset, std::span<const std::byte> memory, bool is_writable);
  bool is_it(const struct ::stat& status) const { return status.st_dev == device_ && status.st_ino == inode_; }
  Result<void> check_size(const struct ::stat& status) const;
  // nullopt: the path now refers to another file. kStorage: the file is too short.
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
