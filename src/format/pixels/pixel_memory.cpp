// SPDX-License-Identifier: Apache-2.0

// The pixels lie in a memfd: memory with a descriptor and no name. Processes find it through a register, a small text
// file with a line "pid descriptor inode" for each process that has it, and open /proc/PID/fd/DESCRIPTOR, which the
// kernel allows to processes of the same user only. Lines of processes that are gone do no harm: the descriptor does
// not open, or the inode is another one.
//
// The register is read and written under its lock. It is named after the contents and the PID namespace, outside of
// which its numbers mean nothing: containers that see each other's files but not each other's processes have a copy
// each. The last process to leave removes it; after a crash it stays, and the next one writes it anew.

#include "format/pixels/pixel_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "storage/local_file.h"

namespace feedline::format {
namespace {

using storage::file_error;
using storage::FileDescriptor;

// Between opening a register and locking it, the last process may leave and remove it.
constexpr int kMostTries = 100;

// A folder that only this user can look into; empty: there is none, or somebody else made it first.
std::string private_folder() {
  std::error_code error;
  for (const std::string& parent : {std::string("/dev/shm"), std::filesystem::temp_directory_path(error).string()}) {
    const std::string folder = parent + "/feedline-" + std::to_string(::geteuid());
    struct ::stat status;
    ::mkdir(folder.c_str(), 0700);
    if (::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
        (status.st_mode & 077) == 0)
      return folder;
  }
  return {};
}

std::string register_name(const PixelContents& contents) {
  struct ::stat status = {};
  ::stat("/proc/self/ns/pid", &status);
  return "pixels-" + contents.digest() + "-" + std::to_string(status.st_ino);
}

// The register, locked. Released with the object.
class Register {
 public:
  static std::optional<Register> lock(const std::string& path) {
    for (int tries = 0; tries < kMostTries; ++tries) {
      FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
      if (!fd.valid()) return {};
      int taken = 0;
      do taken = ::flock(fd.get(), LOCK_EX);
      while (taken != 0 && errno == EINTR);
      struct ::stat mine, named;
      if (taken != 0 || ::fstat(fd.get(), &mine) != 0) return {};
      if (::stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino) return Register(std::move(fd));
    }
    return {};
  }

  std::vector<std::string> lines() const {
    std::string text(1 << 16, '\0');
    const ssize_t bytes = ::pread(fd_.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  bool write(const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return ::ftruncate(fd_.get(), 0) == 0 &&
           ::pwrite(fd_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  }

 private:
  explicit Register(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

std::string line_of(int fd) {
  struct ::stat status = {};
  ::fstat(fd, &status);
  return std::to_string(::getpid()) + " " + std::to_string(fd) + " " + std::to_string(status.st_ino);
}

// The memory that a line of the register speaks of, where it is still there.
FileDescriptor memory_of(const std::string& line) {
  std::istringstream stream(line);
  long pid = 0;
  int descriptor = 0;
  unsigned long long inode = 0;
  if (!(stream >> pid >> descriptor >> inode)) return {};
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  // looked at before it is opened: the number may be a pipe's or a device's by now
  struct ::stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 0) return {};
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_ino != inode) return {};
  return fd;
}

Result<FileDescriptor> new_memory(const PixelContents& contents, std::uint64_t budget) {
  const std::string name = "pixels in memory";
  FileDescriptor fd(::memfd_create("feedline-pixels", MFD_CLOEXEC));
  if (!fd.valid()) return file_error("cannot make shared memory", name, errno);
  const std::vector<std::byte> serialized = contents.serialized();
  const PixelHead head = make_head(contents, serialized);
  // its pages come when they are written
  const auto bytes = static_cast<off_t>(std::max(budget, head.data_offset));
  if (::ftruncate(fd.get(), bytes) != 0) return file_error("cannot make shared memory", name, errno);
  const auto written = [&](const void* data, std::size_t size, off_t offset) {
    return ::pwrite(fd.get(), data, size, offset) == static_cast<ssize_t>(size);
  };
  if (!written(serialized.data(), serialized.size(), kPageBytes) || !written(&head, sizeof head, 0))
    return file_error("cannot make shared memory", name, errno);
  return fd;
}

// What it may grow to was settled by the process that made it.
Result<std::unique_ptr<PixelStore>> mapped(FileDescriptor fd) {
  struct ::stat status;
  if (::fstat(fd.get(), &status) != 0) return file_error("cannot look up", "pixels in memory", errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return PixelStore::map(std::move(fd), "pixels in memory", PixelStore::Kind::kMemory, {size, size});
}

}  // namespace

PixelMemory::PixelMemory(std::unique_ptr<PixelStore> store, std::string register_path, std::string line)
    : store_(std::move(store)), register_path_(std::move(register_path)), line_(std::move(line)) {}

Result<std::unique_ptr<PixelMemory>> PixelMemory::join(const PixelContents& contents, std::uint64_t budget,
                                                       const std::string& folder) {
  const std::string where = folder.empty() ? private_folder() : folder;
  const std::string path = where.empty() ? "" : where + "/" + register_name(contents);
  const auto found = path.empty() ? std::nullopt : Register::lock(path);
  std::vector<std::string> alive;
  FileDescriptor fd;
  std::unique_ptr<PixelStore> store;
  for (const std::string& line : found ? found->lines() : std::vector<std::string>()) {
    FileDescriptor theirs = memory_of(line);
    if (!theirs.valid()) continue;
    alive.push_back(line);
    if (store) continue;
    const int number = theirs.get();
    const std::string mine = line_of(number);
    auto joined = mapped(std::move(theirs));
    if (!joined || !(*joined)->contents().difference(contents).empty()) {
      alive.pop_back();
      continue;
    }
    store = std::move(*joined);
    alive.push_back(mine);
  }
  if (!store) {
    FEEDLINE_TRY(FileDescriptor made, new_memory(contents, budget));
    alive = {line_of(made.get())};
    FEEDLINE_TRY(store, mapped(std::move(made)));
  }
  const bool known = found && found->write(alive);
  return std::unique_ptr<PixelMemory>(new PixelMemory(std::move(store), known ? path : std::string(), alive.back()));
}

PixelMemory::~PixelMemory() {
  // a child after fork() is no process that others could find
  if (register_path_.empty() || !line_.starts_with(std::to_string(::getpid()) + " ")) return;
  const auto found = Register::lock(register_path_);
  if (!found) return;
  auto lines = found->lines();
  std::erase(lines, line_);
  if (lines.empty())
    ::unlink(register_path_.c_str());
  else
    found->write(lines);
}

}  // namespace feedline::format
