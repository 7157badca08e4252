// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files in the file systems of this machine.

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/storage.h"

namespace feedline::storage {

// The system calls of a LocalStorage, which tests replace to simulate errors.
struct SystemReads {
  ssize_t (*pread)(int fd, void* data, std::size_t bytes, off_t offset);  // as pread(2)
  bool map = true;   // false: Access::kMap opens a pread reader, view() returns nullopt
  bool ring = true;  // false: no io_uring
};
SystemReads system_reads();

// Opens only regular files: a directory returns EISDIR, and a pipe or device is rejected without waiting for it.
class LocalStorage final : public Storage {
 public:
  explicit LocalStorage(SystemReads reads);

  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  Result<std::vector<Entry>> list_some(const std::string& directory, std::size_t most) const override;
  Result<ObjectStat> stat(const std::string& path) const override;
  Result<bool> is_directory(const std::string& path) const override;
  std::string identity(const std::string& path) const override;
  std::optional<std::string> local_path(const std::string& path) const override { return path; }
  std::unique_ptr<Transport> own_transport() const override;

 private:
  SystemReads reads_;
};

}  // namespace feedline::storage
