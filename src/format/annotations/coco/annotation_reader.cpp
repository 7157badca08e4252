// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/annotation_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace feedline::format {
namespace {

using Kind = text::JsonReader::Kind;

constexpr std::size_t kNumbersOfTriangle = 6;
constexpr std::size_t kNumbersOfPoint = 3;  // x, y, visibility

}  // namespace

bool AnnotationReader::read(Read& one, std::vector<std::byte>& details) {
  one = {};
  id_ = image_ = {};
  one.annotation.offset = json_.offset();
  one.annotation.details = details.size();
  if (!json_.begin_object()) return false;
  std::string_view key;
  while (json_.next_key(key))
    if (!take_value(key, one, details)) return false;
  if (json_.error()) return false;
  if (!image_) return json_.fail(one.annotation.offset, "an annotation without an integer image_id");
  one.image = *image_;
  one.annotation.id = id_.value_or(0);
  const std::size_t bytes = details.size() - one.annotation.details;
  if (bytes > std::numeric_limits<std::uint32_t>::max())
    return json_.fail(one.annotation.offset, "an annotation with more than 4 GiB of outlines");
  one.annotation.detail_bytes = static_cast<std::uint32_t>(bytes);
  return true;
}

bool AnnotationReader::take_value(std::string_view key, Read& one, std::vector<std::byte>& details) {
  // some tools write null for a missing value
  const Kind kind = json_.peek();
  if ((kind == Kind::kNull || kind == Kind::kBool) && key != "iscrowd") return json_.skip();
  if (key == "id") return take_whole(id_);
  if (key == "image_id") return take_whole(image_);
  if (key == "category_id") return take_category(one, details);
  if (key == "bbox") return take_box(one, details);
  if (key == "area") return take_area(one, details);
  if (key == "segmentation") return take_outline(one, details);
  if (key == "keypoints") return take_keypoints(details);
  if (key == "caption") return take_caption(one, details);
  if (key != "iscrowd") return json_.skip();
  bool is_crowd = false;
  if (!json_.take_flag(is_crowd)) return false;
  if (is_crowd) one.annotation.flags |= CocoAnnotation::kCrowd;
  return true;
}

bool AnnotationReader::take_whole(std::optional<std::int64_t>& number) {
  if (json_.peek() != Kind::kNumber) return json_.skip();
  text::JsonNumber read;
  if (!json_.take_number(read)) return false;
  number = read.whole;
  return true;
}

// Reads a list of numbers. Skips a value of another type.
bool AnnotationReader::take_numbers(std::vector<double>& numbers, bool& are_numbers) {
  numbers.clear();
  are_numbers = json_.peek() == Kind::kArray;
  if (!are_numbers) return json_.skip();
  if (!json_.begin_array()) return false;
  while (json_.next_item()) {
    if (json_.peek() != Kind::kNumber) {
      are_numbers = false;
      if (!json_.skip()) return false;
      continue;
    }
    text::JsonNumber number;
    if (!json_.take_number(number)) return false;
    numbers.push_back(number.real);
  }
  return !json_.error();
}

bool AnnotationReader::take_box(Read& one, std::vector<std::byte>& details) {
  bool are_numbers = false;
  if (!take_numbers(numbers_, are_numbers)) return false;
  if (are_numbers && numbers_.empty()) return true;
  if (!are_numbers || numbers_.size() != 4) {
    add_wrong(CocoValue::kBox, "the bbox is not a list of four numbers", details);
    return true;
  }
  std::array<float, 4>& box = one.annotation.box;
  for (std::size_t i = 0; i < 4; ++i) box[i] = static_cast<float>(numbers_[i]);
  // in single precision, as torchvision converts boxes
  box[2] += box[0];
  box[3] += box[1];
  one.annotation.flags |= CocoAnnotation::kHasBox;
  return true;
}

bool AnnotationReader::take_area(Read& one, std::vector<std::byte>& details) {
  text::JsonNumber area;
  if (json_.peek() != Kind::kNumber) {
    add_wrong(CocoValue::kArea, "the area is not a number", details);
    return json_.skip();
  }
  if (!json_.take_number(area)) return false;
  one.annotation.area = static_cast<float>(area.real);
  one.annotation.flags |= CocoAnnotation::kHasArea;
  return true;
}

bool AnnotationReader::take_category(Read& one, std::vector<std::byte>& details) {
  if (!take_whole(one.category)) return false;
  if (!one.category) add_wrong(CocoValue::kCategory, "the category_id is not an integer", details);
  return true;
}

bool AnnotationReader::take_keypoints(std::vector<std::byte>& details) {
  bool are_numbers = false;
  if (!take_numbers(numbers_, are_numbers)) return false;
  if (are_numbers && numbers_.empty()) return true;
  if (!are_numbers || numbers_.size() % kNumbersOfPoint != 0) {
    add_wrong(CocoValue::kKeypoints, "the keypoints are not a list of three numbers per point", details);
    return true;
  }
  if (points_ == 0) points_ = numbers_.size() / kNumbersOfPoint;
  if (numbers_.size() != points_ * kNumbersOfPoint) {
    add_wrong(CocoValue::kKeypoints,
              "the annotation has " + std::to_string(numbers_.size() / kNumbersOfPoint) +
                  " keypoints, but the first object in the file has " + std::to_string(points_),
              details);
    return true;
  }
  bytes_.resize(numbers_.size() * sizeof(float));
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const auto value = static_cast<float>(numbers_[i]);
    std::memcpy(bytes_.data() + i * sizeof value, &value, sizeof value);
  }
  add_detail(DetailKind::kKeypoints, bytes_, details);
  return true;
}

bool AnnotationReader::take_caption(Read& one, std::vector<std::byte>& details) {
  if (json_.peek() != Kind::kString) {
    add_wrong(CocoValue::kCaption, "the caption is not a string", details);
    return json_.skip();
  }
  if (!json_.take_token(text_)) return false;
  one.has_caption = true;
  add_detail(DetailKind::kCaption, std::as_bytes(std::span(text_)), details);
  return true;
}

bool AnnotationReader::take_outline(Read& one, std::vector<std::byte>& details) {
  switch (json_.peek()) {
    case Kind::kArray:
      return take_polygons(one, details);
    case Kind::kObject:
      return take_runs(one, details);
    default:
      add_wrong(CocoValue::kOutline, "the segmentation is neither a list of polygons nor an RLE object", details);
      return json_.skip();
  }
}

// Adds the polygon in numbers_. Returns the reason if the polygon is invalid, otherwise an empty string.
std::string AnnotationReader::add_polygon(std::size_t number, bool are_numbers, std::vector<std::byte>& out) {
  const std::string which = "polygon " + std::to_string(number) + " of its segmentation ";
  if (!are_numbers) return which + "is not a list of numbers";
  if (numbers_.size() % 2 == 1) return which + "has an odd number of coordinates, " + std::to_string(numbers_.size());
  // COCO's tools reject a first polygon of two points, and draw nothing for later ones
  if (numbers_.size() < 2 || (number == 0 && numbers_.size() < kNumbersOfTriangle))
    return which + "has fewer than three points";
  fifths_.clear();
  for (const double value : numbers_) {
    const auto fifth = to_fifths(value);
    if (!fifth) return which + "has a coordinate far outside any image";
    fifths_.push_back(*fifth);
  }
  OutlineWriter(out).add_polygon(fifths_);
  return {};
}

bool AnnotationReader::take_polygons(Read& one, std::vector<std::byte>& details) {
  std::vector<std::byte> polygons;
  std::string wrong;
  std::size_t count = 0;
  if (!json_.begin_array()) return false;
  while (json_.next_item()) {
    bool are_numbers = false;
    if (!take_numbers(numbers_, are_numbers)) return false;
    if (wrong.empty()) wrong = add_polygon(count, are_numbers, polygons);
    ++count;
  }
  if (json_.error()) return false;
  if (count == 0) return true;
  one.has_outline = true;
  if (!wrong.empty()) {
    add_wrong(CocoValue::kOutline, wrong, details);
    return true;
  }
  bytes_.clear();
  OutlineWriter(bytes_).add(count);
  bytes_.insert(bytes_.end(), polygons.begin(), polygons.end());
  add_detail(DetailKind::kPolygons, bytes_, details);
  return true;
}

bool AnnotationReader::take_counts(Runs& runs) {
  runs.has_counts = true;
  if (json_.peek() == Kind::kString) {
    if (!json_.take_string(text_)) return false;
    if (const auto parsed = parse_runs(text_, runs.runs); !parsed) runs.wrong = parsed.error();
    return true;
  }
  bool are_numbers = false;
  if (!take_numbers(numbers_, are_numbers)) return false;
  if (!are_numbers) runs.wrong = "the counts are neither a string nor a list of numbers";
  for (const double count : numbers_) {
    if (!(count >= 0 && count <= std::numeric_limits<std::int32_t>::max()) || count != std::floor(count)) {
      runs.wrong = "a run length is negative, too large or not an integer";
      break;
    }
    runs.runs.push_back(static_cast<std::uint32_t>(count));
  }
  return true;
}

bool AnnotationReader::take_runs(Read& one, std::vector<std::byte>& details) {
  Runs runs;
  bool are_numbers = true;
  std::string_view key;
  if (!json_.begin_object()) return false;
  while (json_.next_key(key)) {
    const bool taken = key == "counts" ? take_counts(runs)
                       : key == "size" ? take_numbers(runs.size, are_numbers)
                                       : json_.skip();
    if (!taken) return false;
  }
  if (json_.error()) return false;
  one.has_outline = true;
  const auto is_side = [](double side) {
    return side >= 0 && side <= std::numeric_limits<std::int32_t>::max() && side == std::floor(side);
  };
  if (!runs.has_counts || runs.size.size() != 2 || !are_numbers || !std::ranges::all_of(runs.size, is_side)) {
    add_wrong(CocoValue::kOutline, "the segmentation lacks counts or a size of two integers", details);
    return true;
  }
  const auto height = static_cast<std::uint32_t>(runs.size[0]), width = static_cast<std::uint32_t>(runs.size[1]);
  if (runs.wrong.empty())
    if (const auto fits = check_runs(height, width, runs.runs); !fits) runs.wrong = fits.error();
  if (!runs.wrong.empty()) {
    add_wrong(CocoValue::kOutline, "the segmentation cannot be read: " + runs.wrong, details);
    return true;
  }
  bytes_.clear();
  OutlineWriter(bytes_).add_runs(height, width, runs.runs);
  add_detail(DetailKind::kRuns, bytes_, details);
  return true;
}

}  // namespace feedline::format
