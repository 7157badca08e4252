// SPDX-License-Identifier: Apache-2.0
#include "observe/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace feedline::observe {

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
  for (const std::string_view line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() < 2) continue;
    std::string_view first = words[0];
    if (first.ends_with(':')) first.remove_suffix(1);
    if (first == key) return number(words[1]);
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
  // the name, in brackets, may hold spaces and brackets; the fields behind it are numbers
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
