// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "format/annotations/image_folder.h"
#include "format/annotations/sample_pieces.h"
#include "format/annotations/voc/voc_annotation.h"
#include "format/shards/each_shard.h"
#include "format/sources/image_names.h"

namespace feedline::format {
namespace {

constexpr std::array kParts{Part::kImage,     Part::kBoxes, Part::kLabels, Part::kDifficult,
                            Part::kTruncated, Part::kPoses, Part::kMask,   Part::kObjectMask};
constexpr std::array kUsual{Part::kImage, Part::kBoxes, Part::kLabels};

bool is_of_objects(const PartField& field) {
  return field.part != Part::kImage && field.part != Part::kMask && field.part != Part::kObjectMask;
}
bool is_mask(const PartField& field) { return field.part == Part::kMask || field.part == Part::kObjectMask; }

// Returns the split, or an empty string if none was given.
Result<std::string> split_of(const OpenOptions& options) {
  if (!options.annotations.images.empty())
    return config_error("images: not supported for VOC, whose images are in JPEGImages");
  if (!options.annotations.crowd.empty())
    return config_error("crowd: not supported for VOC, which does not mark crowds");
  if (options.missing == Missing::kError) return options.annotations.split;
  return config_error("missing: not supported for VOC, whose listed samples have all fields");
}

// Reads names, one per line.
Result<std::vector<std::string>> read_list(const storage::Storage& storage, const std::string& path) {
  FEEDLINE_TRY(const std::string text, read_text(storage, path));
  std::vector<std::string> names;
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    at = end + 1;
    while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.remove_suffix(1);
    if (line.empty()) continue;
    const bool is_name = line.find_first_of(" \t/") == line.npos && line != "..";
    if (!is_name) {
      auto wrong = data_error("line " + std::to_string(number) + " of the list is not the name of a sample", "format");
      wrong.error().where.shard = path;
      return wrong;
    }
    names.emplace_back(line);
  }
  return names;
}

std::vector<std::string> stems_with(const std::vector<std::string>& files, std::string_view end) {
  std::vector<std::string> stems;
  for (const std::string& file : files)
    if (file.ends_with(end)) stems.push_back(file.substr(0, file.size() - end.size()));
  return stems;
}

Result<std::vector<std::string>> names_in(const storage::Storage& storage, const std::string& folder) {
  std::vector<std::string> names;
  FEEDLINE_TRY(const auto entries, storage.list(folder));
  for (const storage::Entry& entry : entries)
    if (!entry.is_directory) names.push_back(entry.name);
  return names;
}

// Sets the keys to those in the split's list or, without a split, to the keys of all samples in the folder.
Result<void> find_keys(VocSet& set, const std::string& said, const storage::Storage& storage) {
  const bool is_of_masks = std::ranges::any_of(set.fields, is_mask);
  const std::string lists = storage.below(set.root, is_of_masks ? "ImageSets/Segmentation" : "ImageSets/Main");
  const std::string list = storage.below(lists, (said.empty() ? "train" : said) + ".txt");
  if (!said.empty() && said.find('/') != said.npos)
    return config_error("split: '" + said + "' is not a valid list name");
  if (storage.stat(list)) {
    set.list = list;
    FEEDLINE_TRY(set.keys, read_list(storage, list));
  } else if (!said.empty()) {
    return config_error("split: there is no list '" + list + "'");
  } else {
    const bool from_masks = !set.reads_objects && is_of_masks;
    FEEDLINE_TRY(const auto names,
                 names_in(storage, storage.below(set.root, from_masks ? "SegmentationClass" : "Annotations")));
    set.keys = stems_with(names, from_masks ? ".png" : ".xml");
    std::ranges::sort(set.keys);
  }
  if (!set.keys.empty()) return {};
  return config_error(set.list.empty() ? "the folder has no annotations" : "the list '" + set.list + "' is empty");
}

Result<void> find_images(VocSet& set, const storage::Storage& storage) {
  if (!has_part(set.fields, Part::kImage)) return {};
  FEEDLINE_TRY(const auto names, names_in(storage, storage.below(set.root, "JPEGImages")));
  std::map<std::string_view, std::string_view> by_stem;
  for (const std::string& name : names)
    if (is_any_image_name(name)) by_stem.emplace(stem_of(name), name);
  for (const std::string& key : set.keys) {
    const auto found = by_stem.find(key);
    set.images.emplace_back(found == by_stem.end() ? "" : "JPEGImages/" + std::string(found->second));
  }
  return {};
}

Result<std::vector<std::string>> classes_of_lists(const VocSet& set, const storage::Storage& storage) {
  const std::string main = storage.below(set.root, "ImageSets/Main");
  const auto folder = storage.is_directory(main);
  if (!folder || !*folder) return std::vector<std::string>();
  FEEDLINE_TRY(const auto names, names_in(storage, main));
  std::set<std::string> classes;
  for (const std::string_view end : {"_train.txt", "_val.txt", "_trainval.txt", "_test.txt"})
    for (std::string& stem : stems_with(names, end)) classes.insert(std::move(stem));
  return std::vector<std::string>(classes.begin(), classes.end());
}

Result<void> find_classes(VocSet& set, const storage::Storage& storage) {
  FEEDLINE_TRY(set.classes, classes_of_lists(set, storage));
  if (!set.classes.empty() || !set.reads_objects) return {};
  auto names = each_shard<std::vector<std::string>>(
      set.keys.size(),
      [&](std::size_t i) -> Result<std::vector<std::string>> {
        const std::string path = storage.below(set.root, set.annotation(i));
        FEEDLINE_TRY(const std::string text, read_text(storage, path));
        auto annotation = read_voc_annotation(text);
        if (annotation) return std::move(annotation->names);
        annotation.error().where.shard = path;
        return std::unexpected(std::move(annotation).error());
      },
      shards_side_by_side(storage.is_remote()));
  if (!names) return std::unexpected(std::move(names).error());
  std::set<std::string> classes;
  for (const auto& some : *names) classes.insert(some.begin(), some.end());
  set.classes.assign(classes.begin(), classes.end());
  return {};
}

}  // namespace

Result<VocSet> list_voc(const std::string& root, const OpenOptions& options) {
  FEEDLINE_TRY(const std::string split, split_of(options));
  VocSet set;
  set.root = root;
  FEEDLINE_TRY(set.fields, choose_parts(options.fields, kParts, kUsual));
  set.reads_objects = std::ranges::any_of(set.fields, is_of_objects);
  FEEDLINE_CHECK_OK(find_keys(set, split, *options.storage));
  FEEDLINE_CHECK_OK(find_images(set, *options.storage));
  FEEDLINE_CHECK_OK(find_classes(set, *options.storage));
  return set;
}

}  // namespace feedline::format
