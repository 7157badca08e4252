// SPDX-License-Identifier: Apache-2.0
#include "cache/node/copies.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "cache/checksum.h"
#include "cache/file_lock.h"
#include "cache/own_files.h"
#include "storage/local_file.h"
#include "storage/storage.h"

namespace feedline::cache {
namespace {

using storage::FileDescriptor;

constexpr std::size_t kNameDigits = 32;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::string_view kUnfinished = ".unfinished";  // suffix of an entry (output_file.h)

bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// The files of one copy.
struct Files {
  std::optional<Copy> object;
  bool entry = false, partial = false;
};

struct Found {
  std::map<std::string, Files> copies;  // by path
  std::vector<std::string> unfinished;
};

std::string_view name_in(std::string_view file) {
  const std::string_view name = file.substr(0, kNameDigits);
  return name.size() == kNameDigits && std::ranges::all_of(name, is_digit) ? name : std::string_view();
}

void add_file(const std::string& folder, const std::string& file, Found& found) {
  const std::string_view name = name_in(file);
  if (name.empty() || !folder.ends_with("/" + std::string(name.substr(0, 2)))) return;
  const std::string_view suffix = std::string_view(file).substr(kNameDigits);
  const bool is_unfinished = suffix.starts_with(kEntry) && suffix.ends_with(kUnfinished);
  if (suffix != kObject && suffix != kEntry && suffix != kPartial && !is_unfinished) return;
  struct ::stat status;
  if (::lstat((folder + "/" + file).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (is_unfinished) return found.unfinished.push_back(folder + "/" + file);
  std::string path = folder + "/" + std::string(name);
  Files& files = found.copies[path];
  files.entry |= suffix == kEntry;
  files.partial |= suffix == kPartial;
  if (suffix == kObject)
    files.object =
        Copy{std::move(path), static_cast<std::uint64_t>(status.st_size), storage::to_object_stat(status).mtime_ns};
}

Result<Found> list(const std::string& folder) {
  namespace fs = std::filesystem;
  Found found;
  const std::string objects = folder + "/objects";
  std::error_code error;
  if (!is_there(objects)) return found;
  for (fs::directory_iterator inner(objects, error), end; !error && inner != end; inner.increment(error)) {
    std::error_code gone;  // a folder that is concurrently removed counts as empty
    for (fs::directory_iterator file(inner->path(), gone); !gone && file != end; file.increment(gone))
      add_file(inner->path().string(), file->path().filename().string(), found);
  }
  if (error) return storage::file_error("cannot list the folder", objects, error.value());
  return found;
}

// Returns the disk space of a download in progress, or 0 if its process is gone; in that case the file is removed if
// permitted.
std::uint64_t partial_bytes(const std::string& path, Leftovers leftovers, const NodeCalls& calls) {
  const std::string partial = path + std::string(kPartial);
  const LockedFile dead = lock_named(partial, LOCK_EX | LOCK_NB);
  if (dead.valid()) {
    if (leftovers == Leftovers::kRemove) calls.files.remove(partial.c_str());
    return 0;
  }
  struct ::stat status;
  if (::stat(partial.c_str(), &status) != 0 || status.st_size == 0) return 0;  // its room is not reserved yet
  return disk_bytes(static_cast<std::uint64_t>(status.st_size));
}

}  // namespace

std::string copy_path(const std::string& folder, const std::string& name) {
  return folder + "/objects/" + name.substr(0, 2) + "/" + name;
}

std::optional<Entry> entry_of(const std::string& path) {
  memory::ByteBuffer buffer;
  const auto file = storage::local_storage()->read_all(path + std::string(kEntry), buffer, kPage);
  return file ? read_entry(*file) : std::nullopt;
}

Result<std::uint64_t> checksum_of(const FileDescriptor& fd, const std::string& name) {
  memory::ByteBuffer buffer;
  const auto room = buffer.resize(kReadBytes);
  Xxh3 sum;
  for (std::uint64_t offset = 0;;) {
    const ssize_t bytes = ::pread(fd.get(), room.data(), room.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return storage::file_error("cannot read", name, errno);
    if (bytes == 0) return sum.value();
    sum.add(room.first(static_cast<std::size_t>(bytes)));
    offset += static_cast<std::uint64_t>(bytes);
  }
}

LockedFile lock_named(const std::string& path, int how) {
  LockedFile file(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)));
  if (!file.valid() || !lock_open_file(file.file(), how) || !is_named(file.file(), path)) return {};
  return file;
}

bool remove_unused(const std::string& path, const NodeCalls& calls) {
  const std::string object = path + std::string(kObject);
  const LockedFile alone = lock_named(object, LOCK_EX | LOCK_NB);
  if (!alone.valid() || calls.files.remove(object.c_str()) != 0) return false;
  calls.files.remove((path + std::string(kEntry)).c_str());
  return true;
}

void remove_folders(const std::string& folder) {
  std::error_code ignored;
  for (const auto& inner : std::filesystem::directory_iterator(folder + "/objects", ignored)) {
    const std::string name = inner.path().filename().string();
    if (name.size() == 2 && std::ranges::all_of(name, is_digit)) ::rmdir(inner.path().c_str());
  }
  ::rmdir((folder + "/objects").c_str());
  ::unlink((folder + "/" + kLedgerName).c_str());
}

Result<Copies> scan(const std::string& folder, Leftovers leftovers, const NodeCalls& calls) {
  FEEDLINE_TRY(Found found, list(folder));
  const bool removes = leftovers == Leftovers::kRemove;
  Copies copies;
  if (removes)
    for (const std::string& file : found.unfinished) calls.files.remove(file.c_str());
  for (auto& [path, files] : found.copies) {
    if (files.partial) copies.disk_bytes += partial_bytes(path, leftovers, calls);
    // an object without an entry is unusable: someone has deleted a file by hand
    if (files.object && !files.entry && removes && remove_unused(path, calls)) continue;
    if (!files.object && files.entry && removes) calls.files.remove((path + std::string(kEntry)).c_str());
    if (!files.object) continue;
    copies.disk_bytes += disk_bytes(files.object->bytes);
    if (files.entry) copies.whole.push_back(std::move(*files.object));
  }
  return copies;
}

}  // namespace feedline::cache
