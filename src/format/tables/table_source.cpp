// SPDX-License-Identifier: Apache-2.0
#include "format/tables/table_source.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "format/source_list.h"

namespace feedline::format {
namespace {

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

// '*' stands for any text.
bool fits(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, mark = std::string_view::npos, from = 0;  // behind the last star, and where it was tried
  std::size_t i = 0;
  while (at < name.size()) {
    if (i < pattern.size() && pattern[i] == '*') {
      mark = ++i;
      from = at;
    } else if (i < pattern.size() && pattern[i] == name[at]) {
      ++i;
      ++at;
    } else if (mark != std::string_view::npos) {
      i = mark;
      at = ++from;
    } else {
      return false;
    }
  }
  while (i < pattern.size() && pattern[i] == '*') ++i;
  return i == pattern.size();
}

Result<std::vector<std::string>> files_of_pattern(const std::string& pattern, const storage::Storage& storage) {
  const std::size_t slash = pattern.rfind('/');
  const std::string folder = slash == pattern.npos ? "." : slash == 0 ? "/" : pattern.substr(0, slash);
  const std::string_view name = std::string_view(pattern).substr(slash == pattern.npos ? 0 : slash + 1);
  FEEDLINE_TRY(const auto entries, storage.list(folder));
  std::vector<std::string> files;
  for (const storage::Entry& entry : entries)
    if (!entry.is_directory && fits(entry.name, name))
      files.push_back(slash == pattern.npos ? entry.name : pattern.substr(0, slash + 1) + entry.name);
  std::ranges::sort(files);
  if (!files.empty()) return files;
  return config_error("no file fits '" + pattern + "'");
}

struct SplitName {
  std::string split;
  std::optional<std::uint64_t> of;
};

// "train-00000-of-00004" is of "train", and one of 4; a name of digits is of none.
SplitName split_of(std::string_view stem) {
  const auto take_number = [&stem]() -> std::optional<std::uint64_t> {
    const std::size_t begin = stem.find_last_not_of("0123456789") + 1;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(stem.data() + begin, stem.data() + stem.size(), value);
    if (begin == stem.size() || error != std::errc()) return {};
    stem.remove_suffix(stem.size() - begin);
    return value;
  };
  const std::string_view whole = stem;
  const auto of = take_number();
  if (of && stem.ends_with("-of-")) {
    stem.remove_suffix(4);
    if (take_number() && stem.ends_with('-')) return {std::string(stem.substr(0, stem.size() - 1)), of};
  }
  if (of && stem.empty()) return {"", {}};
  return {std::string(whole), {}};
}

}  // namespace

bool has_end(const std::string& path, std::string_view end) {
  return lower(std::string_view(path).substr(0, path.find('?'))).ends_with(end);
}

std::string first_of_list(const std::string& source, const storage::Storage& storage) {
  std::string first = split_list(source).front();
  if (!is_list(first) || (!storage.is_remote() && storage.stat(first))) return first;
  const auto names = expand_braces(first);
  return names && !names->empty() ? names->front() : first;
}

bool is_pattern(const std::string& source, const storage::Storage& storage) {
  return source.substr(source.rfind('/') + 1).contains('*') && (storage.is_remote() || !storage.stat(source));
}

Result<std::vector<std::string>> files_of_list(const std::string& source, const storage::Storage& storage,
                                               std::string_view what) {
  FEEDLINE_TRY(const auto names, shards_of(source, storage, what));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (!is_pattern(name, storage)) {
      files.push_back(name);
      continue;
    }
    FEEDLINE_TRY(const auto found, files_of_pattern(name, storage));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

Result<std::vector<std::string>> files_of_folder(const std::string& folder, const storage::Storage& storage,
                                                 std::string_view end) {
  FEEDLINE_TRY(const auto entries, storage.list(folder));
  std::map<std::string, std::vector<std::string>> splits;
  std::map<std::string, std::uint64_t> wanted;
  for (const storage::Entry& entry : entries) {
    if (entry.is_directory || !has_end(entry.name, end) || entry.name.starts_with('.')) continue;
    const SplitName name = split_of(std::string_view(entry.name).substr(0, entry.name.size() - end.size()));
    splits[name.split].push_back(storage.below(folder, entry.name));
    if (name.of) wanted[name.split] = *name.of;
  }
  if (splits.empty())
    return config_error("the folder '" + folder + "' has no file that ends in '" + std::string(end) + "'");
  if (splits.size() > 1) {
    std::string names;
    for (const auto& [name, files] : splits) names += (names.empty() ? "" : ", ") + name;
    return config_error("the folder '" + folder + "' has several splits (" + names + "); say which, as '" +
                        storage.below(folder, splits.begin()->first + "*" + std::string(end)) + "'");
  }
  auto& [split, files] = *splits.begin();
  if (wanted.contains(split) && wanted[split] != files.size())
    return data_error("the split '" + split + "' in '" + folder + "' has " + std::to_string(files.size()) +
                          " files of the " + std::to_string(wanted[split]) + " that their names say",
                      "format");
  std::ranges::sort(files);
  return std::move(files);
}

}  // namespace feedline::format
