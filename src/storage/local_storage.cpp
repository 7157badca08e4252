// SPDX-License-Identifier: Apache-2.0
#include "storage/local_storage.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

#include "storage/local_file.h"
#include "storage/mapped_reader.h"
#include "storage/pread_reader.h"
#include "storage/ring_transport.h"

namespace feedline::storage {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Returns whether a directory entry is a directory, following links. The type that readdir() returns saves a stat(),
// except for links and on file systems that do not report types. A broken or looping link is not a directory.
bool entry_is_directory(int directory, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return false;
  struct ::stat status;
  return ::fstatat(directory, entry.d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

SystemReads system_reads() { return {.pread = ::pread, .map = true, .ring = true}; }

std::shared_ptr<const Storage> local_storage() {
  static const std::shared_ptr<const Storage> storage = std::make_shared<LocalStorage>(system_reads());
  return storage;
}

LocalStorage::LocalStorage(SystemReads reads) : reads_(reads) {}

Result<std::unique_ptr<Reader>> LocalStorage::open(const std::string& path, Access access) const {
  FEEDLINE_TRY(OpenFile file, open_regular_file(path));
  if (access == Access::kMap && reads_.map) return MappedReader::map(path, std::move(file));
  // with the flag, an io_uring request that would block fails; regular files do not need it
  if (reads_.ring) ::fcntl(file.fd.get(), F_SETFL, 0);
  return std::make_unique<PreadReader>(path, std::move(file.fd), reads_);
}

Result<std::span<const std::byte>> LocalStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                          std::uint64_t most) const {
  FEEDLINE_TRY(const OpenFile file, open_regular_file(path));
  const auto bytes = static_cast<std::uint64_t>(file.status.st_size);
  return read_file(reads_, file.fd.get(), FileRead(path, buffer, bytes, most));
}

Result<std::span<const std::byte>> LocalStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                              std::uint64_t most, const Version& version) const {
  FEEDLINE_TRY(const OpenFile file, open_regular_file(path));
  FEEDLINE_CHECK_OK(check_version(path, version, to_object_stat(file.status)));
  return read_file(reads_, file.fd.get(), FileRead(path, buffer, version.bytes, most));
}

Result<std::vector<Entry>> LocalStorage::list(const std::string& directory) const {
  return list_some(directory, std::numeric_limits<std::size_t>::max());
}

Result<std::vector<Entry>> LocalStorage::list_some(const std::string& directory, std::size_t most) const {
  const std::unique_ptr<DIR, CloseDirectory> stream(::opendir(directory.c_str()));
  if (!stream) return file_error("cannot list the folder", directory, errno);
  std::vector<Entry> entries;
  errno = 0;
  while (entries.size() < most) {
    errno = 0;  // only errno distinguishes the end of a directory from an error
    const dirent* entry = ::readdir(stream.get());
    if (!entry) break;
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    entries.push_back({std::move(name), entry_is_directory(::dirfd(stream.get()), *entry)});
  }
  if (errno != 0) return file_error("cannot list the folder", directory, errno);
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

Result<ObjectStat> LocalStorage::stat(const std::string& path) const {
  struct ::stat status;
  if (::stat(path.c_str(), &status) != 0) return file_error("cannot look up", path, errno);
  return to_object_stat(status);
}

Result<bool> LocalStorage::is_directory(const std::string& path) const {
  struct ::stat status;
  if (::stat(path.c_str(), &status) != 0) return file_error("cannot look up", path, errno);
  return S_ISDIR(status.st_mode);
}

std::string LocalStorage::identity(const std::string& path) const {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  std::string canonical = error ? path : std::filesystem::weakly_canonical(absolute, error).string();
  while (canonical.size() > 1 && canonical.ends_with('/')) canonical.pop_back();
  return error ? path : canonical;
}

std::unique_ptr<Transport> LocalStorage::own_transport() const {
  if (!reads_.ring) return nullptr;
  return RingTransport::make();
}

}  // namespace feedline::storage
