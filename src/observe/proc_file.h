// SPDX-License-Identifier: Apache-2.0
#pragma once

// The forms that the files of /proc and /sys have. A file that is not there, or that may not be read, gives nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::observe {

// nullopt with errno where it cannot be read.
std::optional<std::string> read_file(const std::string& path);

// A file that is read again and again: it stays open, as opening one of /proc costs several times what reading it does.
// Beyond a number of them in this process, each reading opens it. One that was not there, or might not be read, when it
// was first asked for is not asked for again.
class KeptFile {
 public:
  explicit KeptFile(std::string path) : path_(std::move(path)) {}
  ~KeptFile() { close(); }
  KeptFile(KeptFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), refused_(other.refused_) {}
  KeptFile& operator=(KeptFile&&) = delete;

  // What it holds now, in `buffer`. nullopt with errno: what it tells of has ended, or it may not be read.
  std::optional<std::string_view> read(std::string& buffer);

 private:
  void close();

  std::string path_;
  int file_ = -1;
  int refused_ = 0;  // errno
};

// The names in a folder that are numbers, in order: processes, threads, open files.
std::vector<std::int32_t> numbered_entries(const std::string& folder);

std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
std::optional<std::uint64_t> number(std::string_view word);  // decimal, the whole word

// The number behind `key`, which a colon may follow, at the begin of a line: "read_bytes: 12", "throttled_usec 7".
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key);

// Nanoseconds of the "some" line of a pressure file.
std::optional<std::uint64_t> pressure_ns(std::string_view text);

// What is wanted of /proc/PID/stat.
struct ProcessStat {
  std::int32_t parent = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t ticks = 0;         // of CPU, user and system
  std::uint64_t system_ticks = 0;  // of those, in the kernel
  std::uint64_t threads = 0;
  std::uint64_t start = 0;  // ticks since boot: tells two processes of one number apart
  std::uint64_t resident_pages = 0;
  bool ended = false;  // nobody has asked for its exit status yet
};
std::optional<ProcessStat> process_stat(std::string_view text);

}  // namespace feedline::observe
