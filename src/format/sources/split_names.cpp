// SPDX-License-Identifier: Apache-2.0
#include "format/sources/split_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

struct SplitWord {
  std::string_view word, split;
};
constexpr std::array<SplitWord, 10> kWords{{{"train", "train"},
                                            {"training", "train"},
                                            {"validation", "validation"},
                                            {"valid", "validation"},
                                            {"dev", "validation"},
                                            {"val", "validation"},
                                            {"test", "test"},
                                            {"testing", "test"},
                                            {"eval", "test"},
                                            {"evaluation", "test"}}};
constexpr std::string_view kSeparators = "-._ 0123456789";

bool is_separator(char c) { return kSeparators.contains(c); }

bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || is_separator(name[at - 1])) && (end == name.size() || is_separator(name[end]))) return true;
  }
  return false;
}

// Adds the splits that a name contains. Ignores case, since files may be named Train.csv and Test.csv.
void add_splits(std::string_view written, std::vector<std::string_view>& splits) {
  const std::string name = to_lower(written);
  for (const SplitWord& one : kWords)
    if (std::ranges::find(splits, one.split) == splits.end() && has_word(name, one.word)) splits.push_back(one.split);
}

// Returns the splits in the folder names of a path, including partitions such as "split=train".
std::vector<std::string_view> splits_of_folders(std::string_view path) {
  std::vector<std::string_view> splits;
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/')) {
    std::string_view folder = path.substr(0, slash);
    if (folder.starts_with("split=")) folder.remove_prefix(6);
    add_splits(folder, splits);
    path.remove_prefix(slash + 1);
  }
  return splits;
}

std::vector<std::string_view> splits_of_name(std::string_view path) {
  std::vector<std::string_view> splits;
  add_splits(path.substr(path.rfind('/') + 1), splits);
  return splits;
}

using Splits = std::map<std::string, std::vector<std::string>>;

template <typename SplitsOf>
std::optional<Splits> by(const std::vector<std::string>& paths, const SplitsOf& splits_of) {
  Splits splits;
  for (const std::string& path : paths) {
    const auto names = splits_of(path);
    if (names.empty()) splits[""].push_back(path);
    for (const std::string_view name : names) splits[std::string(name)].push_back(path);
  }
  if (splits.size() == 1 && splits.begin()->first.empty()) return {};
  return splits;
}

}  // namespace

NumberedPart numbered_part(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t of = name.find("-of-");
  if (of == name.npos || of == 0) return {};
  const std::size_t number = name.substr(0, of).find_last_not_of("0123456789") + 1;
  if (number == of || number < 2 || name[number - 1] != '-') return {};
  NumberedPart part{std::string(path.substr(0, path.size() - name.size() + number - 1)), 0};
  const std::string_view count = name.substr(of + 4);
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), part.parts);
  const bool ends = end == count.data() + count.size() || *end == '.' || *end == '-';
  return error == std::errc() && ends ? part : NumberedPart();
}

Splits splits_of(const std::vector<std::string>& paths) {
  constexpr std::string_view kData = "data/";
  const auto is_named_split = [&](const std::string& path) {
    return path.starts_with(kData) && path.find('/', kData.size()) == path.npos && numbered_part(path).parts > 0;
  };
  if (std::ranges::all_of(paths, is_named_split)) {
    Splits splits;
    for (const std::string& path : paths) splits[numbered_part(path).stem.substr(kData.size())].push_back(path);
    return splits;
  }
  if (auto splits = by(paths, splits_of_folders)) return *splits;
  if (auto splits = by(paths, splits_of_name)) return *splits;
  return {{"", paths}};
}

}  // namespace feedline::format
