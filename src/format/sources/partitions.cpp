// SPDX-License-Identifier: Apache-2.0
#include "format/sources/partitions.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "format/sources/glob.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const std::string_view digits = text[i] == '%' ? text.substr(i + 1, 2) : std::string_view();
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    const bool is_code = digits.size() == 2 && error == std::errc() && end == digits.data() + 2;
    decoded += is_code ? static_cast<char>(value) : text[i];
    if (is_code) i += 2;
  }
  return decoded;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Returns the partitions in the folder names of a path.
Pairs pairs_in(std::string_view path) {
  Pairs pairs;
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/')) {
    const std::string_view folder = path.substr(0, slash);
    if (const std::size_t equals = folder.find('='); equals != folder.npos && equals > 0)
      pairs.emplace_back(percent_decoded(folder.substr(0, equals)), percent_decoded(folder.substr(equals + 1)));
    path.remove_prefix(slash + 1);
  }
  return pairs;
}

bool is_integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<std::string> Partition::distinct() const {
  std::vector<std::string> found;
  for (const auto& value : values)
    if (value) found.push_back(*value);
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

std::string partition_root(const std::string& source, bool is_folder, const std::vector<std::string>& files) {
  if (is_folder) return source;
  if (!source.contains("::") && !source.contains('{') && has_wildcard(source, false) && files.size() > 1)
    return fixed_folder_of(source);
  std::string common = files.front().substr(0, files.front().rfind('/') + 1);  // npos + 1 is 0
  for (const std::string& file : files) {
    common.resize(static_cast<std::size_t>(std::ranges::mismatch(common, file).in1 - common.begin()));
    common.resize(common.rfind('/') + 1);
  }
  return common;
}

Result<std::vector<Partition>> partitions_of(const std::string& root, const std::vector<std::string>& files) {
  std::vector<Partition> partitions;
  for (const std::string& file : files) {
    std::string_view path = file;
    if (path.starts_with(root)) path.remove_prefix(root.size());
    const Pairs pairs = pairs_in(path);
    const bool is_first = &file == &files.front();
    bool is_same = is_first || pairs.size() == partitions.size();
    for (std::size_t i = 0; i < pairs.size() && is_same; ++i) {
      const auto& [name, value] = pairs[i];
      if (is_first) partitions.push_back({name, false, {}});
      is_same = partitions[i].name == name;
      partitions[i].values.push_back(value == "__HIVE_DEFAULT_PARTITION__" ? std::nullopt : std::optional(value));
    }
    if (!is_same)
      return config_error("'" + file + "' has different partitions from '" + files.front() +
                          "': the folders of all files must have the same names before '='");
  }
  for (Partition& partition : partitions) {
    const auto all = partition.distinct();
    partition.are_integers = !all.empty() && std::ranges::all_of(all, is_integer);
  }
  return partitions;
}

}  // namespace feedline::format
