// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/annotations/coco/coco_details.h"
#include "format/annotations/coco/coco_table.h"
#include "text/json_reader.h"

namespace feedline::format {

// Reads one object of a COCO file's `annotations` after the other. Not for several threads at once.
class AnnotationReader {
 public:
  explicit AnnotationReader(text::JsonReader& json) : json_(json) {}

  struct Read {
    CocoAnnotation annotation;  // its category and its place are not filled in
    std::int64_t image = 0;
    std::optional<std::int64_t> category;
    bool has_outline = false, has_caption = false;
  };
  // false: json.error() says why. Its details are put behind `details`.
  bool read(Read& one, std::vector<std::byte>& details);
  std::uint64_t points() const { return points_; }  // of an object's keypoints, as the first have it; 0: none has any

 private:
  struct Runs {
    std::vector<std::uint32_t> runs;
    std::vector<double> size;
    std::string wrong;
    bool has_counts = false;
  };
  bool take_value(std::string_view key, Read& one, std::vector<std::byte>& details);
  bool take_whole(std::optional<std::int64_t>& number);
  bool take_numbers(std::vector<double>& numbers, bool& are_numbers);
  bool take_box(Read& one, std::vector<std::byte>& details);
  bool take_area(Read& one, std::vector<std::byte>& details);
  bool take_category(Read& one, std::vector<std::byte>& details);
  bool take_keypoints(std::vector<std::byte>& details);
  bool take_caption(Read& one, std::vector<std::byte>& details);
  bool take_outline(Read& one, std::vector<std::byte>& details);
  bool take_polygons(Read& one, std::vector<std::byte>& details);
  std::string add_polygon(std::size_t number, bool are_numbers, std::vector<std::byte>& out);
  bool take_runs(Read& one, std::vector<std::byte>& details);
  bool take_counts(Runs& runs);

  text::JsonReader& json_;
  std::uint64_t points_ = 0;
  std::optional<std::int64_t> id_, image_;
  std::vector<double> numbers_;
  std::vector<std::int32_t> fifths_;
  std::vector<std::byte> bytes_;
  std::string text_;
};

}  // namespace feedline::format
