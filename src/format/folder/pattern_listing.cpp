// SPDX-License-Identifier: Apache-2.0
#include "format/folder/pattern_listing.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "format/folder/tree_listing.h"
#include "format/shards/each_shard.h"

namespace feedline::format {
namespace {

using Keys = std::vector<std::string>;

// The maximum depth. Deeper paths are probably caused by a link to a parent folder.
constexpr int kMostDepth = 64;

std::string joined(const std::string& folder, const std::string& path) {
  return folder.empty() ? path : path.empty() ? folder : folder + "/" + path;
}

// Lists one folder for all fields whose files are in it.
class PatternWalker {
 public:
  PatternWalker(const storage::Storage& storage, const std::string& root, std::string folder,
                std::span<const FieldPattern> patterns)
      : storage_(storage), root_(root), folder_(std::move(folder)), patterns_(patterns) {}

  Result<PatternListing> list() {
    listing_.keys.resize(patterns_.size());
    FEEDLINE_CHECK_OK(list("", 0));
    for (Keys& keys : listing_.keys) std::ranges::sort(keys);
    return std::move(listing_);
  }

 private:
  // `inner` is the path of a subfolder, relative to the folder.
  Result<void> list(const std::string& inner, int depth) {
    const std::string below = joined(folder_, inner), path = joined(root_, below);
    if (depth > kMostDepth)
      return config_error("'" + path + "' is nested over " + std::to_string(kMostDepth) + " levels deep");
    // The time must be read before the contents, so that a later change is detected.
    FEEDLINE_TRY(const storage::ObjectStat stat, storage_.stat(path));
    FEEDLINE_TRY(const auto entries, storage_.list(path));
    listing_.folders.push_back({below, stat});
    for (const storage::Entry& entry : entries) {
      const std::string name = joined(inner, entry.name);
      if (entry.is_directory)
        FEEDLINE_CHECK_OK(list(name, depth + 1));
      else
        add_file(name);
    }
    return {};
  }

  void add_file(const std::string& path) {
    for (std::size_t field = 0; field < patterns_.size(); ++field) {
      if (patterns_[field].folder != folder_) continue;
      if (const auto key = patterns_[field].key_of(path)) listing_.keys[field].emplace_back(*key);
    }
  }

  const storage::Storage& storage_;
  const std::string& root_;
  const std::string folder_;
  const std::span<const FieldPattern> patterns_;
  PatternListing listing_;
};

Result<PatternListing> list_folders(const storage::Storage& storage, const std::string& root,
                                    std::span<const std::string> folders, std::span<const FieldPattern> patterns) {
  FEEDLINE_TRY(auto listed, each_shard<PatternListing>(folders.size(), [&](std::size_t i) {
                 return PatternWalker(storage, root, folders[i], patterns).list();
               }));
  PatternListing all;
  for (PatternListing& part : listed) std::ranges::move(part.folders, std::back_inserter(all.folders));
  for (const FieldPattern& pattern : patterns) {
    const auto folder = static_cast<std::size_t>(std::ranges::find(folders, pattern.folder) - folders.begin());
    all.keys.push_back(std::move(listed[folder].keys[all.keys.size()]));
  }
  return all;
}

// Returns the path relative to `folder`, or nullopt if the path is not below this folder. An empty `folder` is the
// root.
std::optional<std::string_view> path_in(std::string_view path, std::string_view folder) {
  if (folder.empty()) return path;
  if (!path.starts_with(folder) || path.size() <= folder.size() || path[folder.size()] != '/') return {};
  return path.substr(folder.size() + 1);
}

// Lists storage with flat names. One listing covers the files directly in the root; subfolders are listed separately.
Result<PatternListing> list_flat(const storage::Storage& storage, const std::string& root,
                                 std::span<const std::string> folders, std::span<const FieldPattern> patterns) {
  PatternListing listing;
  listing.keys.resize(patterns.size());
  listing.folders.push_back(listed_now());
  FEEDLINE_TRY(const storage::Tree top, storage.list_below(root, storage::Depth::kFolder));
  const auto lies_deeper = [&](const std::string& folder) {
    return std::ranges::any_of(top.folders, [&](const std::string& one) {
      return folder.empty() || one == folder || path_in(folder, one).has_value();
    });
  };
  for (const std::string& folder : folders) {
    const bool is_deeper = lies_deeper(folder);
    storage::Tree below;
    if (is_deeper) {
      FEEDLINE_TRY(below, list_tree(storage, joined(root, folder)));
    }
    for (const storage::StoredBelow& object : is_deeper ? below.objects : top.objects) {
      const auto path = is_deeper ? std::string_view(object.path) : path_in(object.path, folder);
      for (std::size_t field = 0; path && field < patterns.size(); ++field) {
        if (patterns[field].folder != folder) continue;
        if (const auto key = patterns[field].key_of(*path)) listing.keys[field].emplace_back(*key);
      }
    }
  }
  for (Keys& keys : listing.keys) std::ranges::sort(keys);
  return listing;
}

}  // namespace

Result<PatternListing> list_patterns(const storage::Storage& storage, const std::string& root,
                                     std::span<const FieldPattern> patterns) {
  std::vector<std::string> folders;
  for (const FieldPattern& pattern : patterns)
    if (std::ranges::find(folders, pattern.folder) == folders.end()) folders.push_back(pattern.folder);
  FEEDLINE_TRY(PatternListing all, storage.has_flat_names() ? list_flat(storage, root, folders, patterns)
                                                            : list_folders(storage, root, folders, patterns));
  for (std::size_t field = 0; field < patterns.size(); ++field) {
    const FieldPattern& pattern = patterns[field];
    if (all.keys[field].empty())
      return config_error("no file for the field '" + pattern.description.name + "': no file matches '" +
                          pattern.path_of("{key}") + "' below '" + root + "'");
  }
  return all;
}

PatternSamples samples_of(const PatternListing& listing, Missing missing) {
  PatternSamples samples;
  const auto combine = [&](const Keys& keys, auto how) {
    Keys combined;
    how(samples.keys, keys, std::back_inserter(combined));
    samples.keys = std::move(combined);
  };
  for (const Keys& keys : listing.keys) combine(keys, std::ranges::set_union);
  const std::uint64_t all = samples.keys.size();
  if (missing == Missing::kSkip)
    for (const Keys& keys : listing.keys) combine(keys, std::ranges::set_intersection);
  samples.left_out = all - samples.keys.size();
  for (const Keys& keys : listing.keys) {
    std::vector<bool>& lacks = samples.lacks.emplace_back();
    for (const std::string& key : samples.keys) lacks.push_back(!std::ranges::binary_search(keys, key));
  }
  return samples;
}

}  // namespace feedline::format
