// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_scan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "format/annotations/coco/annotation_reader.h"

namespace feedline::format {
namespace {

struct Category {
  std::int64_t id = 0;
  std::uint64_t offset = 0;
  std::string name;
};

// Returns whether a relative path may be outside its folder, or contains a NUL.
bool leads_out(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return true;
  while (true) {
    const std::size_t end = path.find('/');
    if (path.substr(0, end) == "..") return true;
    if (end == path.npos) return false;
    path.remove_prefix(end + 1);
  }
}

class Scan {
 public:
  explicit Scan(text::JsonReader& json) : json_(json), reader_(json) {}

  Result<CocoParts> run() {
    if (!read_all()) return std::unexpected(*json_.error());
    if (!has_images_)
      return data_error(
          "the JSON file has no list \"images\": it is not a COCO file, or it is truncated. A JSON table has one "
          "object per line, or one array of objects, and a list of shards has \"shardlist\" or \"splits\"",
          "format");
    if (!sort_images() || !sort_categories()) return std::unexpected(*json_.error());
    sort_annotations();
    parts_.points = reader_.points();
    return std::move(parts_);
  }

 private:
  bool read_all();
  template <typename Take>
  bool each(Take take) {
    if (!json_.begin_array()) return false;
    while (json_.next_item())
      if (!take()) return false;
    return !json_.error();
  }
  bool take_id(std::optional<std::int64_t>& id);
  bool take_image();
  bool take_category();
  bool take_annotation();
  bool take_side(std::uint32_t& side);
  bool sort_images();
  bool sort_categories();
  void sort_annotations();
  std::optional<std::uint64_t> image_of(std::int64_t id) const;
  std::uint32_t category_of(std::optional<std::int64_t> id) const;

  text::JsonReader& json_;
  AnnotationReader reader_;
  bool has_images_ = false;
  CocoParts parts_;
  std::vector<Category> categories_;
  std::vector<CocoAnnotation> annotations_;  // in the order of the JSON
  std::vector<std::int64_t> images_of_, categories_of_;
  std::string text_;
};

constexpr std::int64_t kNoId = std::numeric_limits<std::int64_t>::min();

bool Scan::read_all() {
  std::string_view key;
  if (!json_.begin_object()) return false;
  while (json_.next_key(key)) {
    const bool is_list = json_.peek() == text::JsonReader::Kind::kArray;
    bool taken = false;
    if (is_list && key == "images") {
      has_images_ = true;
      taken = each([this] { return take_image(); });
    } else if (is_list && key == "annotations") {
      taken = each([this] { return take_annotation(); });
    } else if (is_list && key == "categories") {
      taken = each([this] { return take_category(); });
    } else {
      taken = json_.skip();
    }
    if (!taken) return false;
  }
  return !json_.error() && json_.finish();
}

bool Scan::take_side(std::uint32_t& side) {
  if (json_.peek() != text::JsonReader::Kind::kNumber) return json_.skip();
  text::JsonNumber number;
  if (!json_.take_number(number)) return false;
  // annotation tools write -1 for an unknown side; only masks need it and report an error
  const bool is_side = number.real >= 0 && number.real <= std::numeric_limits<std::int32_t>::max();
  side = is_side ? static_cast<std::uint32_t>(number.real) : 0;
  return true;
}

bool Scan::take_id(std::optional<std::int64_t>& id) {
  text::JsonNumber number;
  const bool taken = json_.take_number(number);
  id = number.whole;
  return taken;
}

bool Scan::take_image() {
  CocoImage image{.offset = json_.offset()};
  std::optional<std::int64_t> id;
  bool is_named = false;
  std::string_view key;
  if (!json_.begin_object()) return false;
  while (json_.next_key(key)) {
    bool taken = false;
    if (key == "id" && json_.peek() == text::JsonReader::Kind::kNumber) {
      taken = take_id(id);
    } else if (key == "file_name" && json_.peek() == text::JsonReader::Kind::kString) {
      taken = is_named = json_.take_string(text_);
    } else if (key == "width" || key == "height") {
      taken = take_side(key == "width" ? image.width : image.height);
    } else {
      taken = json_.skip();
    }
    if (!taken) return false;
  }
  if (json_.error()) return false;
  if (!id) return json_.fail(image.offset, "an image without an integer id");
  if (!is_named) return json_.fail(image.offset, "an image without a file_name");
  if (leads_out(text_))
    return json_.fail(image.offset, "the file_name '" + text_ + "', which points outside the folder,");
  if (parts_.images.size() == std::numeric_limits<std::uint32_t>::max())
    return json_.fail(image.offset, "more than 4 billion images");
  image.id = *id;
  image.names = static_cast<std::uint32_t>(parts_.images.size());
  parts_.images.push_back(image);
  parts_.name_ends.push_back(parts_.names.append(text_).size());
  return true;
}

bool Scan::take_category() {
  Category category{.offset = json_.offset()};
  std::optional<std::int64_t> id;
  std::string_view key;
  if (!json_.begin_object()) return false;
  while (json_.next_key(key)) {
    bool taken = false;
    if (key == "id" && json_.peek() == text::JsonReader::Kind::kNumber) {
      taken = take_id(id);
    } else if (key == "name" && json_.peek() == text::JsonReader::Kind::kString) {
      taken = json_.take_string(category.name);
    } else {
      taken = json_.skip();
    }
    if (!taken) return false;
  }
  if (json_.error()) return false;
  if (!id) return json_.fail(category.offset, "a category without an integer id");
  category.id = *id;
  if (category.name.empty()) category.name = std::to_string(*id);
  categories_.push_back(std::move(category));
  return true;
}

bool Scan::take_annotation() {
  AnnotationReader::Read one;
  if (!reader_.read(one, parts_.details)) return false;
  annotations_.push_back(one.annotation);
  images_of_.push_back(one.image);
  categories_of_.push_back(one.category.value_or(kNoId));
  parts_.captions += one.has_caption ? 1 : 0;
  parts_.outlines += one.has_outline ? 1 : 0;
  parts_.boxes += (one.annotation.flags & CocoAnnotation::kHasBox) != 0 ? 1 : 0;
  return true;
}

bool Scan::sort_images() {
  std::ranges::stable_sort(parts_.images, {}, &CocoImage::id);
  const auto twice = std::ranges::adjacent_find(parts_.images, {}, &CocoImage::id);
  if (twice == parts_.images.end()) return true;
  return json_.fail((twice + 1)->offset, "an image with the id " + std::to_string(twice->id) +
                                             ", which is already used (at byte " + std::to_string(twice->offset) +
                                             "),");
}

bool Scan::sort_categories() {
  std::ranges::stable_sort(categories_, {}, &Category::id);
  const auto twice = std::ranges::adjacent_find(categories_, {}, &Category::id);
  if (twice != categories_.end())
    return json_.fail((twice + 1)->offset, "a category with the id " + std::to_string(twice->id) +
                                               ", which is already used (at byte " + std::to_string(twice->offset) +
                                               "),");
  for (const Category& category : categories_) {
    parts_.category_ids.push_back(category.id);
    parts_.name_ends.push_back(parts_.names.append(category.name).size());
  }
  return true;
}

std::optional<std::uint64_t> Scan::image_of(std::int64_t id) const {
  const auto found = std::ranges::lower_bound(parts_.images, id, {}, &CocoImage::id);
  if (found == parts_.images.end() || found->id != id) return {};
  return static_cast<std::uint64_t>(found - parts_.images.begin());
}

std::uint32_t Scan::category_of(std::optional<std::int64_t> id) const {
  const auto found = std::ranges::lower_bound(parts_.category_ids, id.value_or(kNoId));
  if (!id || found == parts_.category_ids.end() || *found != *id) return CocoAnnotation::kNoCategory;
  return static_cast<std::uint32_t>(found - parts_.category_ids.begin());
}

// Sorts annotations by image, keeping their order within an image.
void Scan::sort_annotations() {
  std::vector<std::uint64_t> locations(annotations_.size());
  parts_.annotation_ends.assign(parts_.images.size(), 0);
  for (std::size_t i = 0; i < annotations_.size(); ++i) {
    const auto image = image_of(images_of_[i]);
    locations[i] = image.value_or(parts_.images.size());
    if (image)
      ++parts_.annotation_ends[*image];
    else
      ++parts_.orphans;
  }
  std::vector<std::uint64_t> next(parts_.images.size());
  std::exclusive_scan(parts_.annotation_ends.begin(), parts_.annotation_ends.end(), next.begin(), std::uint64_t{0});
  std::partial_sum(parts_.annotation_ends.begin(), parts_.annotation_ends.end(), parts_.annotation_ends.begin());
  parts_.annotations.resize(annotations_.size() - parts_.orphans);
  for (std::size_t i = 0; i < annotations_.size(); ++i) {
    if (locations[i] == parts_.images.size()) continue;
    CocoAnnotation& one = parts_.annotations[next[locations[i]]++] = annotations_[i];
    const std::int64_t category = categories_of_[i];
    one.category = category_of(category == kNoId ? std::nullopt : std::optional(category));
  }
  annotations_ = {};
}

}  // namespace

Result<CocoParts> scan_coco(text::JsonReader& json) { return Scan(json).run(); }

}  // namespace feedline::format
