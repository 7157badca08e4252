// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and parses files in /proc and /sys. For a missing or unreadable file, the functions return an empty result.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::observe {

// Returns nullopt and sets errno if the file cannot be read.
std::optional<std::string> read_file(const std::string& path);

// A file that is read repeatedly. The file stays open, because opening a file in /proc costs several times as much as
// reading it. If too many files are open in this process, each read opens and closes the file. A file that was missing
// or unreadable at the first read is not tried again.
class OpenProcFile {
 public:
  explicit OpenProcFile(std::string path) : path_(std::move(path)) {}
  ~OpenProcFile() { close(); }
  OpenProcFile(OpenProcFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), refused_(other.refused_) {}
  OpenProcFile& operator=(OpenProcFile&&) = delete;

  // Returns the current content, stored in `buffer`. Returns nullopt and sets errno if the process or group has ended,
  // or the file is not readable.
  std::optional<std::string_view> read(std::string& buffer);

 private:
  void close();

  std::string path_;
  int file_ = -1;
  int refused_ = 0;  // errno
};

// Returns the numeric names in a folder in ascending order: processes, threads or open files.
std::vector<std::int32_t> numbered_entries(const std::string& folder);

std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
std::optional<std::uint64_t> number(std::string_view word);  // decimal, the whole word

// Returns the number after `key` at the start of a line, such as "read_bytes: 12" or "throttled_usec 7"; the colon is
// optional.
std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key);

// Returns the nanoseconds in the "some" line of a pressure file.
std::optional<std::uint64_t> pressure_ns(std::string_view text);

// The fields of /proc/PID/stat that Feedline uses.
struct ProcessStat {
  std::int32_t parent = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t ticks = 0;         // CPU time, user and system
  std::uint64_t system_ticks = 0;  // of those, in the kernel
  std::uint64_t threads = 0;
  std::uint64_t start = 0;  // ticks since boot: distinguishes two processes with the same number
  std::uint64_t resident_pages = 0;
  bool ended = false;  // a zombie: its exit status has not been collected
};
std::optional<ProcessStat> process_stat(std::string_view text);

}  // namespace feedline::observe
