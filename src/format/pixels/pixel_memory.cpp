// SPDX-License-Identifier: Apache-2.0

// Processes find each other's memory through a register (cache/memory_register.h), whose name contains the id of the
// contents and the PID namespace.

#include "format/pixels/pixel_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "cache/memory_register.h"
#include "cache/own_files.h"
#include "storage/local_file.h"

namespace feedline::format {
namespace {

using storage::file_error;
using storage::FileDescriptor;

constexpr const char* kName = "pixels in memory";  // name in errors

std::string register_name(const PixelContents& contents) {
  return "pixels-" + contents.digest() + "-" + cache::process_namespace();
}

Result<FileDescriptor> made_memory(const PixelContents& contents, std::uint64_t budget) {
  const std::vector<std::byte> serialized = contents.serialized();
  const PixelHead head = make_head(contents, serialized);
  FEEDLINE_TRY(FileDescriptor fd, cache::make_memory("feedline-pixels", std::max(budget, head.data_offset)));
  FEEDLINE_CHECK_OK(cache::write_at(fd, kName, kPageBytes, serialized));
  FEEDLINE_CHECK_OK(cache::write_at(fd, kName, 0, std::as_bytes(std::span(&head, 1))));
  return fd;
}

// Maps memory whose maximum size was set by the process that created it.
Result<std::unique_ptr<PixelStore>> mapped(FileDescriptor fd) {
  struct ::stat status;
  if (::fstat(fd.get(), &status) != 0) return file_error("cannot look up", kName, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return PixelStore::map(cache::LockedFile(std::move(fd)), kName, PixelStore::Kind::kMemory, {size, size});
}

}  // namespace

PixelMemory::PixelMemory(std::unique_ptr<PixelStore> store, std::string register_path, std::string line)
    : store_(std::move(store)), register_path_(std::move(register_path)), line_(std::move(line)) {}

Result<std::unique_ptr<PixelMemory>> PixelMemory::join(const PixelContents& contents, std::uint64_t budget,
                                                       const std::string& folder) {
  const std::string where = folder.empty() ? cache::private_folder() : folder;
  const std::string path = where.empty() ? "" : where + "/" + register_name(contents);
  const auto found = path.empty() ? std::nullopt : cache::MemoryRegister::lock(path);
  std::vector<std::string> alive;
  std::unique_ptr<PixelStore> store;
  for (const std::string& line : found ? found->lines() : std::vector<std::string>()) {
    FileDescriptor theirs = cache::memory_of(line);
    if (!theirs.valid()) continue;
    alive.push_back(line);
    if (store) continue;
    const std::string mine = cache::line_of(theirs);
    auto joined = mapped(std::move(theirs));
    if (!joined || !(*joined)->contents().difference(contents).empty()) {
      alive.pop_back();
      continue;
    }
    store = std::move(*joined);
    alive.push_back(mine);
  }
  if (!store) {
    FEEDLINE_TRY(FileDescriptor made, made_memory(contents, budget));
    alive = {cache::line_of(made)};
    FEEDLINE_TRY(store, mapped(std::move(made)));
  }
  const bool known = found && found->write(alive);
  return std::unique_ptr<PixelMemory>(new PixelMemory(std::move(store), known ? path : std::string(), alive.back()));
}

PixelMemory::~PixelMemory() {
  // After fork(), a child must not remove its parent's entry.
  if (register_path_.empty() || !line_.starts_with(std::to_string(::getpid()) + " ")) return;
  const auto found = cache::MemoryRegister::lock(register_path_);
  if (!found) return;
  auto lines = found->lines();
  std::erase(lines, line_);
  if (lines.empty())
    cache::MemoryRegister::remove(register_path_);
  else
    found->write(lines);
}

}  // namespace feedline::format
