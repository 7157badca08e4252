// SPDX-License-Identifier: Apache-2.0
#include "cache/copy_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/fork_mutex.h"
#include "cache/file_lock.h"
#include "cache/places.h"
#include "storage/file_descriptor.h"
#include "storage/local_file.h"
#include "storage/storage.h"

namespace feedline::cache {
namespace {

using storage::FileDescriptor;

constexpr std::string_view kUses = ".uses", kOrigin = ".origin";
constexpr std::uint64_t kBlock = 512;  // unit of st_blocks

std::string lock_of(const std::string& folder) { return folder + "/uses.lock"; }

// The open files with this process's uses, by folder. They stay open and locked until the process ends. A forked child
// shares the files and their locks.
struct OwnUses {
  ForkMutex mutex;
  std::map<std::string, FileDescriptor> files;  // guarded by mutex
  std::set<std::string> names;                  // guarded by mutex
};
OwnUses& own_uses() {
  static auto* const uses = new OwnUses;  // not destroyed, because threads may still open datasets at exit
  return *uses;
}

// Requires: the folder's lock is held.
FileDescriptor create_uses(const std::string& folder) {
  constexpr mode_t kMode = 0666;  // minus the umask
  for (int number = 0;; ++number) {
    const std::string path =
        folder + "/" + std::to_string(::getpid()) + "." + std::to_string(number) + std::string(kUses);
    FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, kMode));
    if (!fd.valid() && errno == EEXIST) continue;  // of another host or an ended process
    if (fd.valid() && !lock_open_file(fd, LOCK_EX | LOCK_NB)) return {};
    return fd;
  }
}

// Returns the names in a file of uses, or removes the file if its process has ended.
std::string read_uses(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return {};
  if (lock_open_file(fd, LOCK_EX | LOCK_NB)) return ::unlink(path.c_str()), std::string();
  memory::ByteBuffer buffer;
  constexpr std::uint64_t kMost = 256 << 20;
  const auto bytes = storage::local_storage()->read_all(path, buffer, kMost);
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : std::string();
}

struct PlainCopy {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t last_use = 0;
};
struct Contents {
  std::uint64_t bytes = 0;
  std::vector<PlainCopy> unused;  // oldest first
};

std::uint64_t bytes_of(const struct ::stat& status) { return static_cast<std::uint64_t>(status.st_blocks) * kBlock; }

// Requires: the folder's lock is held.
Contents contents_of(const std::string& folder) {
  Contents contents;
  std::set<std::string, std::less<>> used;
  std::vector<std::string> origins;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string();
    struct ::stat status;
    if (::lstat(path.c_str(), &status) == 0) contents.bytes += bytes_of(status);
    if (path.ends_with(kOrigin)) origins.push_back(path);
    if (!path.ends_with(kUses)) continue;
    const std::string names = read_uses(path);
    for (std::size_t begin = 0, end; (end = names.find('\n', begin)) != names.npos; begin = end + 1)
      used.insert(names.substr(begin, end - begin));
  }
  for (const std::string& origin : origins) {
    const std::string path = origin.substr(0, origin.size() - kOrigin.size());
    struct ::stat status, of_origin;
    if (used.contains(last_part(path)) || ::stat(path.c_str(), &status) != 0 ||
        ::stat(origin.c_str(), &of_origin) != 0 || !may_remove(path))
      continue;
    constexpr std::int64_t kNs = 1'000'000'000;
    contents.unused.push_back({path, bytes_of(status), of_origin.st_mtim.tv_sec * kNs + of_origin.st_mtim.tv_nsec});
  }
  std::ranges::sort(contents.unused, {}, &PlainCopy::last_use);
  return contents;
}

Result<std::uint64_t> limit_of(const std::string& folder, std::uint64_t copies) {
  struct ::statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0) return storage::file_error("cannot look up", folder, errno);
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  return static_cast<std::uint64_t>(kCopyShare * static_cast<double>(free + copies));
}

}  // namespace

void add_use(const std::string& path) {
  const std::string folder = folder_of(path);
  OwnUses& own = own_uses();
  const std::lock_guard guard(own.mutex);
  if (own.names.contains(path)) return;
  const auto lock = FileLock::take(lock_of(folder));
  if (!lock.held()) return;
  FileDescriptor& file = own.files[folder];
  if (!file.valid()) file = create_uses(folder);
  const std::string line = last_part(path) + "\n";
  if (file.valid() && ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()))
    own.names.insert(path);
}

void note_last_use(const std::string& path) {
  static_cast<void>(::utimensat(AT_FDCWD, (path + std::string(kOrigin)).c_str(), nullptr, 0));
}

Result<void> make_room(const std::string& folder, std::uint64_t bytes, std::optional<std::uint64_t> most) {
  const auto lock = FileLock::take(lock_of(folder));
  const Contents contents = contents_of(folder);
  std::uint64_t limit = most.value_or(0);
  if (!most) {
    FEEDLINE_TRY(limit, limit_of(folder, contents.bytes));
  }
  std::uint64_t left = contents.bytes;
  std::size_t victims = 0;
  while (left + bytes > limit && lock.held() && victims < contents.unused.size())
    left -= std::min(left, contents.unused[victims++].bytes);
  if (left + bytes > limit)
    return storage_error("decompressed copies in '" + folder + "' may use " + std::to_string(limit >> 20) +
                             " MiB, and those in use have " + std::to_string(left >> 20) + " MiB",
                         ENOSPC);
  for (const PlainCopy& copy : std::span(contents.unused).first(victims)) {
    ::unlink((copy.path + std::string(kOrigin)).c_str());
    ::unlink(copy.path.c_str());
  }
  return {};
}

}  // namespace feedline::cache
