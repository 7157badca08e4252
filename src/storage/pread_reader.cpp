// SPDX-License-Identifier: Apache-2.0
#include "storage/pread_reader.h"

#include <cerrno>
#include <utility>

#include "storage/local_file.h"

namespace feedline::storage {

PreadReader::PreadReader(std::string name, FileDescriptor fd, SystemReads reads)
    : name_(std::move(name)), fd_(std::move(fd)), reads_(reads) {}

Result<ObjectStat> PreadReader::stat() const {
  struct ::stat status;
  if (::fstat(fd_.get(), &status) != 0) return file_error("cannot look up", name_, errno);
  return to_object_stat(status);
}

Result<std::size_t> PreadReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  FEEDLINE_TRY(const auto bytes, read_file(reads_, fd_.get(), FileRead(name_, out, offset)));
  return bytes.size();
}

}  // namespace feedline::storage
