// SPDX-License-Identifier: Apache-2.0
#pragma once

// The forms that the files of /proc and /sys have. A file that is not there, or that may not be read, gives nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::observe {

// nullopt with errno where it cannot be read.
std::optional<std::string> read_file(const std::string& path);

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
