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

// Reads the objects in a COCO file's `annotations` one by one. Not thread-safe.
class AnnotationReader {
 public:
  explicit AnnotationReader(text::JsonReader& json) : json_(json) {}

  struct Read {
    CocoAnnotation annotation;  // without its category and its position
    std::int64_t image = 0;
    std::optional<std::int64_t> category;
    bool has_outline = false, has_caption = false;
  };
  // Reads the next annotation and appends its details to `details`. Returns false on an error, which json.error()
  // describes.
  bool read(Read& one, std::vector<std::byte>& details);
  std::uint64_t points() const {
    return points_;
  }  // keypoints per object, from the first object that has any; 0 if
     // none has

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
