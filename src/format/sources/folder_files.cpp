// SPDX-License-Identifier: Apache-2.0
#include "format/sources/folder_files.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/sources/glob.h"
#include "format/sources/image_names.h"
#include "format/sources/index_names.h"
#include "format/sources/packed_folder.h"
#include "format/sources/split_names.h"

namespace feedline::format {
namespace {

constexpr int kDeepest = 32;  // deeper than any real dataset: probably a link to a parent folder

bool is_passed_over(std::string_view name) {
  return name.starts_with('.') || name.starts_with('_') || is_index_name(name);
}

std::string without_slash(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

// Returns some of the entries of a folder, which may have millions of entries.
std::vector<storage::Entry> some_entries(const std::string& folder, const storage::Storage& storage) {
  constexpr std::size_t kSome = 64;  // enough to find a file of each kind in the folder
  auto entries = storage.list_some(folder, kSome);
  if (!entries) return {};
  std::ranges::sort(*entries, {}, &storage::Entry::name);
  return std::move(*entries);
}

// Searches some of the entries of each folder for a data file.
class Look {
 public:
  Look(const storage::Storage& storage, const IsDataFile& is_data) : storage_(storage), is_data_(is_data) {}

  // Returns whether the search is finished.
  bool at(const std::string& folder, const std::vector<storage::Entry>& entries, int depth) {
    for (const storage::Entry& entry : entries) {
      if (entry.is_directory || is_passed_over(entry.name)) continue;
      if (is_data_(entry.name)) return found = storage_.below(folder, entry.name), true;
      if (is_image_name(entry.name)) return true;
    }
    constexpr int kLevels = 8;
    if (depth == kLevels) return false;
    for (const storage::Entry& entry : entries) {
      if (!entry.is_directory || is_passed_over(entry.name)) continue;
      constexpr int kMostFolders = 64;  // limits the time spent on a large tree of unrelated files
      if (++folders_ > kMostFolders) return true;
      const std::string below = storage_.below(folder, entry.name);
      if (at(below, some_entries(below, storage_), depth + 1)) return true;
    }
    return false;
  }

  std::optional<std::string> found;

 private:
  const storage::Storage& storage_;
  const IsDataFile& is_data_;
  int folders_ = 0;
};

// Adds the data files in a folder and its subfolders to `paths`. `inner` is the path of `folder` relative to the
// dataset's folder, and `paths` are also relative to it.
Result<void> collect(const std::string& folder, const std::string& inner, const storage::Storage& storage,
                     const IsDataFile& is_data, int depth, std::vector<std::string>& paths) {
  if (depth > kDeepest)
    return config_error("'" + folder + "' is nested over " + std::to_string(kDeepest) + " folders deep");
  FEEDLINE_TRY(const auto entries, storage.list(folder));
  for (const storage::Entry& entry : entries) {
    if (is_passed_over(entry.name)) continue;
    const std::string path = inner.empty() ? entry.name : inner + "/" + entry.name;
    if (entry.is_directory)
      FEEDLINE_CHECK_OK(collect(storage.below(folder, entry.name), path, storage, is_data, depth + 1, paths));
    else if (is_data(entry.name))
      paths.push_back(path);
  }
  return {};
}

using Paths = std::vector<std::string>;

Paths matching(const Paths& all, const std::string& pattern) {
  Paths found;
  std::ranges::copy_if(all, std::back_inserter(found), [&](const auto& path) { return matches_glob(path, pattern); });
  return found;
}

// Returns a source (a folder, a pattern or a list) that opens exactly these files, and no other data files in the
// folder.
std::string source_of(const std::string& folder, const Paths& files, const Paths& all, std::string_view end,
                      const storage::Storage& storage) {
  std::string common = files.front();
  for (const std::string& file : files)
    common.resize(static_cast<std::size_t>(std::ranges::mismatch(common, file).in1 - common.begin()));
  for (std::size_t slash = common.find('/'); slash != common.npos; slash = common.find('/', slash + 1)) {
    const std::string inner = common.substr(0, slash + 1);
    const auto is_below = [&](const std::string& path) { return path.starts_with(inner); };
    if (std::ranges::count_if(all, is_below) == std::ssize(files)) return storage.below(folder, inner.substr(0, slash));
  }
  if (files.size() == 1) return storage.below(folder, files.front());
  const std::string without_digits = common.substr(0, common.find_last_not_of("0123456789") + 1);
  const std::string inner = common.substr(0, common.rfind('/') + 1);  // npos + 1 is 0
  for (const std::string& pattern : {without_digits + "*" + std::string(end), common + "*" + std::string(end),
                                     inner + "**/" + common.substr(inner.size()) + "*" + std::string(end)})
    if (matching(all, pattern) == files) return storage.below(folder, pattern);
  std::string list;
  for (const std::string& file : files) list += (list.empty() ? "" : "::") + storage.below(folder, file);
  return list;
}

// If the names contain the number of files ("-of-00004"), checks that all of them exist.
Result<void> check_complete(const std::string& folder, const Paths& files) {
  std::map<std::pair<std::string, std::size_t>, std::size_t> found;
  for (const std::string& file : files)
    if (const NumberedPart part = numbered_part(file); part.parts > 0) ++found[{part.stem, part.parts}];
  for (const auto& [part, count] : found)
    if (count < part.second)
      return data_error("'" + part.first + "' in '" + folder + "' has " + std::to_string(count) +
                            " files, but their names specify " + std::to_string(part.second) +
                            ": copy or download the others",
                        "format");
  return {};
}

}  // namespace

std::optional<std::string> first_data_file(const std::string& folder, const storage::Storage& storage,
                                           const IsDataFile& is_data) {
  const std::string root = without_slash(folder);
  const auto entries = storage.list(root);
  if (!entries) return {};
  Look look(storage, is_data);
  look.at(root, *entries, 0);
  return look.found;
}

Result<std::vector<std::string>> files_of_folder(const std::string& given, const storage::Storage& storage,
                                                 const IsDataFile& is_data, std::string_view end) {
  const std::string folder = without_slash(given);
  Paths paths;
  bool is_packed = false;
  const auto take = [&](std::string_view name) {
    is_packed |= name.starts_with(kManifestPrefix);
    return is_data(name);
  };
  FEEDLINE_CHECK_OK(collect(folder, "", storage, take, 0, paths));
  if (is_packed) FEEDLINE_CHECK_OK(packed_folder(folder, storage));  // otherwise, save the requests
  if (paths.empty())
    return config_error("the folder '" + folder + "' has no file " +
                        (end.empty() ? "of this format" : "that ends in '" + std::string(end) + "'"));
  std::ranges::sort(paths);
  const auto splits = splits_of(paths);
  if (splits.size() > 1) {
    std::string names, sources;
    for (const auto& [name, files] : splits) {
      names += (names.empty() ? "" : ", ") + (name.empty() ? "files without a split" : name);
      sources += (sources.empty() ? "'" : " or '") + source_of(folder, files, paths, end, storage) + "'";
    }
    return config_error("the folder '" + folder + "' has several splits (" + names + "); open one of them: " + sources);
  }
  FEEDLINE_CHECK_OK(check_complete(folder, paths));
  for (std::string& path : paths) path = storage.below(folder, path);
  return paths;
}

}  // namespace feedline::format
