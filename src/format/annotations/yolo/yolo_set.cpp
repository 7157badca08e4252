// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yolo_set.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/annotations/image_folder.h"
#include "format/annotations/sample_pieces.h"
#include "format/annotations/yolo/yaml_reader.h"
#include "format/folder/listed_folders.h"
#include "format/sources/glob.h"
#include "format/sources/image_names.h"
#include "text/utf8.h"

namespace feedline::format {
namespace {

using Kind = YamlValue::Kind;
using Yaml = std::map<std::string, YamlValue>;

constexpr std::array kParts{Part::kImage, Part::kBoxes,     Part::kLabels,
                            Part::kMasks, Part::kKeypoints, Part::kVisibility};
constexpr std::array kUsual{Part::kImage, Part::kBoxes, Part::kLabels};
constexpr std::size_t kMostClasses = 1'000'000;
constexpr std::size_t kMostPoints = 4096;

std::optional<std::size_t> count_of(std::string_view text, std::size_t most) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return {};
  return value;
}

// Returns the split, or an empty string if none was given.
Result<std::string> split_of(const OpenOptions& options) {
  if (!options.annotations.images.empty())
    return config_error("images: not supported for YOLO, whose YAML file names the image folders");
  if (!options.annotations.crowd.empty())
    return config_error("crowd: not supported for YOLO, which does not mark crowds");
  if (options.missing == Missing::kError) return options.annotations.split;
  return config_error("missing: not supported for YOLO; an image without a label file has no objects");
}

std::unexpected<Error> unread(const std::string& key, const YamlValue& value) {
  return config_error("the YAML key '" + key + "' holds " +
                      (value.kind == Kind::kUnread ? value.text : std::string("an unexpected value")) +
                      "; supported values are strings, and lists and mappings of strings");
}

// Reads "names", which is a list of names or a mapping from numbers to names.
Result<void> take_names(const Yaml& yaml, YoloSet& set) {
  const auto names = yaml.find("names"), count = yaml.find("nc");
  if (names != yaml.end() && names->second.kind == Kind::kList) {
    set.classes = names->second.list;
  } else if (names != yaml.end() && names->second.kind == Kind::kMapping) {
    std::map<std::size_t, std::string> by_number;
    for (const auto& [number, name] : names->second.map) {
      const auto label = count_of(number, kMostClasses);
      if (!label || !by_number.emplace(*label, name).second) return unread("names", names->second);
    }
    for (const auto& [label, name] : by_number) {
      if (label != set.classes.size())
        return config_error(
            "the names in the YAML file are not numbered consecutively from 0: the first missing number is " +
            std::to_string(set.classes.size()));
      set.classes.push_back(name);
    }
  } else if (names != yaml.end() && names->second.kind != Kind::kNothing) {
    return unread("names", names->second);
  }
  set.lines.classes = set.classes.size();
  if (count == yaml.end()) return {};
  const auto classes = count->second.kind == Kind::kText ? count_of(count->second.text, kMostClasses) : std::nullopt;
  if (!classes) return unread("nc", count->second);
  if (!set.classes.empty() && *classes != set.classes.size())
    return config_error("nc in the YAML file is " + std::to_string(*classes) + ", but the file has " +
                        std::to_string(set.classes.size()) + " names");
  set.lines.classes = *classes;
  return {};
}

// Reads "kpt_shape": the number of keypoints, and whether each has two or three numbers.
Result<void> take_points(const Yaml& yaml, YoloSet& set) {
  const auto shape = yaml.find("kpt_shape");
  const bool needs_points = has_part(set.fields, Part::kKeypoints) || has_part(set.fields, Part::kVisibility);
  if (shape != yaml.end()) {
    if (shape->second.kind != Kind::kList || shape->second.list.size() != 2) return unread("kpt_shape", shape->second);
    const auto points = count_of(shape->second.list[0], kMostPoints), dimensions = count_of(shape->second.list[1], 3);
    if (!points || *points == 0 || !dimensions || *dimensions < 2) return unread("kpt_shape", shape->second);
    set.lines.points = *points;
    set.lines.dimensions = *dimensions;
  }
  if (!needs_points || set.lines.points > 0) return {};
  return config_error("fields: keypoints require kpt_shape in the YAML file");
}

// Returns the folders that may contain the split: the value of "path" in the YAML file, and the folder that contains
// the YAML file.
std::vector<std::string> bases_of(const std::string& yaml_folder, const Yaml& yaml, const storage::Storage& storage) {
  const auto path = yaml.find("path");
  if (path == yaml.end() || path->second.kind != Kind::kText || path->second.text.empty()) return {yaml_folder};
  const std::string& said = path->second.text;
  if (said.starts_with('/')) return {said, yaml_folder};
  return {storage.below(yaml_folder, said), yaml_folder};
}

// Returns the path of an image or folder in the first base folder that contains it. Also tries paths without "../",
// since Roboflow writes "../train" even if the folder is next to the YAML file.
std::optional<std::string> find_place(const std::vector<std::string>& bases, const std::string& path,
                                      const storage::Storage& storage) {
  if (path.starts_with('/'))
    return storage.stat(path) || storage.is_directory(path) ? std::optional(path) : std::nullopt;
  std::string_view inner = path;
  while (inner.starts_with("./")) inner.remove_prefix(2);
  for (const std::string& base : bases)
    for (const std::string_view one : {inner, inner.starts_with("../") ? inner.substr(3) : inner}) {
      const std::string location = without_end_slashes(storage.below(base, one));
      if (const auto folder = storage.is_directory(location); folder && *folder) return location;
      if (storage.stat(location)) return location;
    }
  return {};
}

// Returns "a/labels/b.txt" for "a/images/b.jpg".
std::string label_of(const std::string& image) {
  constexpr std::string_view kFolder = "/images/";
  std::string path = image;
  if (const std::size_t at = path.rfind(kFolder); at != path.npos) path.replace(at, kFolder.size(), "/labels/");
  return std::string(stem_of(path)) + ".txt";
}

// Resolves "/../", so that the labels are found: returns "a/images/b.jpg" for "a/lists/../images/b.jpg".
std::string without_parents(std::string path) {
  constexpr std::string_view kUp = "/../";
  for (std::size_t up = path.find(kUp); up != path.npos && up > 0; up = path.find(kUp)) {
    const std::size_t folder = path.rfind('/', up - 1);
    if (folder == path.npos || path.substr(folder + 1, up - folder - 1) == "..") break;
    path.erase(folder, up + kUp.size() - 1 - folder);
  }
  return path;
}

class Listing {
 public:
  Listing(const storage::Storage& storage, YoloSet& set) : storage_(storage), set_(set) {}

  // Adds the images in a folder, or the images listed in a text file.
  Result<void> add(const std::string& location, const std::vector<std::string>& bases) {
    const auto folder = storage_.is_directory(location);
    if (folder && *folder) return add_folder(location);
    FEEDLINE_TRY(const std::string text, read_text(storage_, location));
    std::string base;  // for names without "./"; determined by the first one
    for (std::size_t at = text.starts_with(text::kByteOrderMark) ? text::kByteOrderMark.size() : 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      at = end + 1;
      while (!line.empty() && static_cast<unsigned char>(line.back()) <= ' ') line.pop_back();
      if (line.empty()) continue;
      const bool is_below_list = line.starts_with("./");  // as in Ultralytics
      const std::string name = is_below_list ? line.substr(2) : line;
      if (!is_below_list && base.empty()) base = base_of(name, bases, folder_of(location));
      const std::string path =
          name.starts_with('/') ? name : storage_.below(is_below_list ? folder_of(location) : base, name);
      images_.emplace(without_parents(path), name);
    }
    return {};
  }

  Result<void> finish() {
    for (auto& [path, key] : images_) {
      const std::string label = label_of(path);
      FEEDLINE_TRY(const bool is_there, has_label(label));
      set_.unlabeled += is_there ? 0 : 1;
      set_.labels.push_back(is_there ? label : std::string());
      set_.images.push_back(path);
      set_.keys.push_back(key);
    }
    return {};
  }

 private:
  // Returns the first base folder that contains the image, or the list's folder if only this folder contains it.
  std::string base_of(const std::string& name, const std::vector<std::string>& bases, const std::string& list) const {
    for (const std::string& base : bases)
      if (storage_.stat(storage_.below(base, name))) return base;
    return storage_.stat(storage_.below(list, name)) ? list : bases.front();
  }

  Result<void> add_folder(const std::string& folder) {
    FEEDLINE_TRY(const auto files, files_below(storage_, folder));
    for (const std::string& file : files)
      if (is_any_image_name(file)) images_.emplace(storage_.below(folder, file), file);
    return {};
  }

  // Returns whether a label file exists. Lists each folder only once.
  Result<bool> has_label(const std::string& path) {
    const std::string folder = folder_of(path);
    auto known = label_folders_.find(folder);
    if (known == label_folders_.end()) {
      known = label_folders_.emplace(folder, std::set<std::string, std::less<>>()).first;
      if (const auto is_there = storage_.is_directory(folder); is_there && *is_there) {
        FEEDLINE_TRY(const auto entries, storage_.list(folder));
        for (const storage::Entry& entry : entries) known->second.insert(entry.name);
      }
    }
    return known->second.contains(last_of(path));
  }

  const storage::Storage& storage_;
  YoloSet& set_;
  std::map<std::string, std::string> images_;  // keys of the samples, by path
  std::map<std::string, std::set<std::string, std::less<>>> label_folders_;
};

// Returns the split's value in the YAML file or, without a YAML file, the usual folder.
Result<std::vector<std::string>> locations_of(const Yaml& yaml, const std::string& split, bool has_yaml) {
  if (!has_yaml) return std::vector<std::string>{"images/" + split};
  const auto found = yaml.find(split);
  if (found == yaml.end() || found->second.kind == Kind::kNothing) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : yaml) keys.push_back(key);
    return config_error("split: the YAML file has no split '" + split + "'; its keys are " + shown_names(keys));
  }
  if (found->second.kind == Kind::kText) return std::vector<std::string>{found->second.text};
  if (found->second.kind == Kind::kList && !found->second.list.empty()) return found->second.list;
  return unread(split, found->second);
}

Result<void> list_images(YoloSet& set, const Yaml& yaml, const std::string& yaml_file, const std::string& said,
                         const storage::Storage& storage) {
  const std::string split = said.empty() ? "train" : said;
  const auto bases = bases_of(yaml_file.empty() ? set.root : folder_of(yaml_file), yaml, storage);
  FEEDLINE_TRY(std::vector<std::string> locations, locations_of(yaml, split, !yaml_file.empty()));
  if (yaml_file.empty() && said.empty() && !find_place(bases, locations.front(), storage))
    locations = {"images"};  // a folder with a single split
  Listing listing(storage, set);
  for (const std::string& path : locations) {
    const auto location = find_place(bases, path, storage);
    if (!location) return config_error("split: '" + path + "' does not exist in '" + bases.front() + "'");
    FEEDLINE_CHECK_OK(listing.add(*location, bases));
  }
  FEEDLINE_CHECK_OK(listing.finish());
  if (set.images.empty()) return config_error("split: '" + locations.front() + "' has no images");
  if (set.unlabeled == set.images.size())
    return config_error("no image has a label file such as '" + label_of(set.images.front()) + "'");
  return {};
}

}  // namespace

std::string find_yaml(const std::string& source, const storage::Storage& storage) {
  const auto is_yaml = [](std::string_view name) {
    const std::string end = extension_of(name);
    return end == "yaml" || end == "yml";
  };
  if (is_yaml(source)) return source;
  const std::string usual = storage.below(source, "data.yaml");
  return storage.stat(usual) ? usual : std::string();
}

Result<YoloSet> list_yolo(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const std::string split, split_of(options));
  YoloSet set;
  set.root = without_end_slashes(source);
  FEEDLINE_TRY(set.fields, choose_parts(options.fields, kParts, kUsual));
  Yaml yaml;
  const std::string file = find_yaml(set.root, *options.storage);
  if (!file.empty()) {
    FEEDLINE_TRY(const std::string text, read_text(*options.storage, file));
    auto read = read_yaml(text);
    if (!read) {
      read.error().where.shard = file;
      return std::unexpected(std::move(read).error());
    }
    yaml = std::move(*read);
  }
  FEEDLINE_CHECK_OK(take_names(yaml, set));
  FEEDLINE_CHECK_OK(take_points(yaml, set));
  FEEDLINE_CHECK_OK(list_images(set, yaml, file, split, *options.storage));
  return set;
}

}  // namespace feedline::format
