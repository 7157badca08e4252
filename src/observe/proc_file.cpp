// SPDX-License-Identifier: Apache-2.0
#include "observe/proc_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>

namespace feedline::observe {
namespace {

// A quarter of the default limit on open files per process.
constexpr int kMostOpen = 256;
std::atomic<int> open_files = 0;

constexpr std::size_t kUsualWords = 64;      // for /proc/PID/stat, the longest line that is split often
constexpr std::size_t kFirstBuffer = 16384;  // enough for most files in /proc, even on machines with 100 CPUs

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece;
  ssize_t got = 0;
  while ((got = ::read(file, piece.data(), piece.size())) > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  ::close(file);
  if (got < 0) return std::nullopt;
  return text;
}

void OpenProcFile::close() {
  if (file_ < 0) return;
  ::close(std::exchange(file_, -1));
  open_files.fetch_sub(1, std::memory_order_relaxed);
}

std::optional<std::string_view> OpenProcFile::read(std::string& buffer) {
  if (refused_ != 0) {
    errno = refused_;
    return std::nullopt;
  }
  const int file = file_ >= 0 ? file_ : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT || errno == EACCES || errno == EPERM) refused_ = errno;
    return std::nullopt;
  }
  if (buffer.size() < kFirstBuffer) buffer.resize(kFirstBuffer);
  std::size_t size = 0;
  ssize_t got = 0;
  while ((got = ::pread(file, buffer.data() + size, buffer.size() - size, static_cast<off_t>(size))) > 0) {
    size += static_cast<std::size_t>(got);
    if (size < buffer.size()) break;  // the kernel returns these files completely if the buffer is large enough
    buffer.resize(2 * buffer.size());
  }
  const int failed = got < 0 ? errno : 0;
  if (file_ < 0) {
    if (failed == 0 && open_files.fetch_add(1, std::memory_order_relaxed) < kMostOpen) {
      file_ = file;
    } else {
      if (failed == 0) open_files.fetch_sub(1, std::memory_order_relaxed);
      ::close(file);
    }
  } else if (failed != 0) {
    close();
  }
  if (failed == 0) return std::string_view(buffer).substr(0, size);
  if (failed == EACCES || failed == EPERM) refused_ = failed;
  errno = failed;
  return std::nullopt;
}

std::vector<std::int32_t> numbered_entries(const std::string& folder) {
  std::vector<std::int32_t> found;
  DIR* entries = ::opendir(folder.c_str());
  if (!entries) return found;
  while (const dirent* entry = ::readdir(entries))
    if (const auto name = number(entry->d_name)) found.push_back(static_cast<std::int32_t>(*name));
  ::closedir(entries);
  std::ranges::sort(found);
  return found;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  words.reserve(std::min(line.size() / 2 + 1, kUsualWords));
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(" \t\n", at);
    if (at == std::string_view::npos) return words;
    const std::size_t end = line.find_first_of(" \t\n", at);
    words.push_back(line.substr(at, end - at));
    if (end == std::string_view::npos) return words;
    at = end;
  }
}

std::optional<std::uint64_t> number(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key) {
  // files of hundreds of lines are read ten times per second for one or two of them
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    if (!line.starts_with(' ') && !line.starts_with('\t')) continue;
    const auto words = words_of(line);
    return words.empty() ? std::nullopt : number(words[0]);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> pressure_ns(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    if (!line.starts_with("some ")) continue;
    for (const std::string_view word : words_of(line))
      if (word.starts_with("total="))
        if (const auto us = number(word.substr(6))) return *us * 1000;
  }
  return std::nullopt;
}

std::optional<ProcessStat> process_stat(std::string_view text) {
  // the name, in parentheses, may contain spaces and parentheses; the fields after it are numbers
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const auto words = words_of(text.substr(name_end + 1));  // words[0] is field 3 of proc(5), the state
  if (words.size() < 22) return std::nullopt;
  const auto field = [&](std::size_t of_proc) { return number(words[of_proc - 3]).value_or(0); };
  ProcessStat stat;
  stat.ended = words[0] == "Z" || words[0] == "X";
  stat.parent = static_cast<std::int32_t>(field(4));
  stat.minor_faults = field(10);
  stat.major_faults = field(12);
  stat.ticks = field(14) + field(15);
  stat.system_ticks = field(15);
  stat.threads = field(20);
  stat.start = field(22);
  stat.resident_pages = field(24);
  return stat;
}

}  // namespace feedline::observe
