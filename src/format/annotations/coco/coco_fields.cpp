// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_fields.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "format/annotations/coco/coco_details.h"
#include "format/annotations/coco/coco_masks.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

constexpr std::array kParts{Part::kImage,         Part::kBoxes,    Part::kLabels,    Part::kCategoryIds,
                            Part::kAnnotationIds, Part::kArea,     Part::kIsCrowd,   Part::kImageId,
                            Part::kMasks,         Part::kMask,     Part::kCrowdMask, Part::kKeypoints,
                            Part::kVisibility,    Part::kCaptions, Part::kCaption};
constexpr std::array kUsual{Part::kImage, Part::kBoxes, Part::kLabels};
constexpr std::array kUsualOfCaptions{Part::kImage, Part::kCaptions};

// Rejects a part that no annotation in the file has.
Result<void> check_part(const CocoTable& table, const PartField& field) {
  const auto lacks = [&](std::string_view what) {
    return config_error("fields: '" + std::string(name_of(field.part)) + "': no annotation in the file has " +
                        std::string(what));
  };
  if (table.annotations().empty()) return {};
  switch (field.part) {
    case Part::kBoxes:
      return table.boxes() == 0 ? lacks("a bbox") : Result<void>();
    case Part::kLabels:
    case Part::kCategoryIds:
      return table.category_ids().empty() ? lacks("a category listed in \"categories\"") : Result<void>();
    case Part::kMask:
      if (table.category_ids().empty()) return lacks("a category listed in \"categories\"");
      [[fallthrough]];
    case Part::kMasks:
    case Part::kCrowdMask:
      return table.outlines() == 0 ? lacks("a segmentation") : Result<void>();
    case Part::kKeypoints:
    case Part::kVisibility:
      return table.points() == 0 ? lacks("keypoints") : Result<void>();
    case Part::kCaptions:
    case Part::kCaption:
      return table.captions() == 0 ? lacks("a caption") : Result<void>();
    default:
      return {};
  }
}

// Fills one field of one sample.
class Filling {
 public:
  Filling(const CocoTable& table, std::span<const CocoAnnotation> annotations, const CocoFields& fields,
          std::size_t field, memory::Record& record)
      : table_(table), annotations_(annotations), fields_(fields), field_(field), record_(record) {
    for (const CocoAnnotation& one : annotations_) count_ += fields.takes(one) ? 1 : 0;
  }

  // `get` returns the numbers of an annotation's row as an array, or an error.
  template <typename Value, std::size_t kColumns, typename Get>
  Result<void> add_rows(DType dtype, const Shape& shape, Get get) {
    FEEDLINE_TRY(const auto room, add_array(record_, 0, field_, {dtype, shape}));
    std::byte* out = room.data();
    for (const CocoAnnotation& one : annotations_) {
      if (!fields_.takes(one)) continue;
      using Row = std::array<Value, kColumns>;
      FEEDLINE_TRY(const Row row, get(one));
      std::memcpy(out, row.data(), sizeof row);
      out += sizeof row;
    }
    return {};
  }

  template <typename Value, typename Get>
  Result<void> add_numbers(DType dtype, Get get) {
    return add_rows<Value, 1>(dtype, {rows()}, [&](const CocoAnnotation& one) -> Result<std::array<Value, 1>> {
      FEEDLINE_TRY(const Value value, get(one));
      return std::array<Value, 1>{value};
    });
  }

  Result<void> add_boxes() {
    return add_rows<float, 4>(DType::kFloat32, {rows(), 4},
                              [&](const CocoAnnotation& one) -> Result<std::array<float, 4>> {
                                if ((one.flags & CocoAnnotation::kHasBox) != 0) return one.box;
                                return wrong(one, CocoValue::kBox, "the annotation has no bbox");
                              });
  }
  Result<void> add_labels() {
    return add_numbers<std::int64_t>(DType::kInt64, [&](const CocoAnnotation& one) -> Result<std::int64_t> {
      if (one.category != CocoAnnotation::kNoCategory) return std::int64_t{one.category};
      return no_category(one);
    });
  }
  Result<void> add_category_ids() {
    return add_numbers<std::int64_t>(DType::kInt64, [&](const CocoAnnotation& one) -> Result<std::int64_t> {
      if (one.category != CocoAnnotation::kNoCategory) return table_.category_ids()[one.category];
      return no_category(one);
    });
  }
  Result<void> add_area() {
    return add_numbers<float>(DType::kFloat32, [&](const CocoAnnotation& one) -> Result<float> {
      if ((one.flags & CocoAnnotation::kHasArea) != 0) return one.area;
      return wrong(one, CocoValue::kArea, "the annotation has no area");
    });
  }
  Result<void> add_ids() {
    return add_numbers<std::int64_t>(DType::kInt64,
                                     [](const CocoAnnotation& one) -> Result<std::int64_t> { return one.id; });
  }
  Result<void> add_crowd() {
    return add_numbers<std::int64_t>(
        DType::kInt64, [](const CocoAnnotation& one) -> Result<std::int64_t> { return one.is_crowd() ? 1 : 0; });
  }

  // Adds the coordinates or the visibility of all keypoints. Objects without keypoints get zeros, as unlabeled points
  // have in COCO.
  Result<void> add_points(bool are_places) {
    const std::size_t points = table_.points();
    const auto count = static_cast<std::int64_t>(points);
    const ArraySpec spec =
        are_places ? ArraySpec{DType::kFloat32, {rows(), count, 2}} : ArraySpec{DType::kInt64, {rows(), count}};
    FEEDLINE_TRY(const auto room, add_array(record_, 0, field_, spec));
    const std::size_t row = points * 8;  // a point's two floats, or an integer
    if (!room.empty()) std::memset(room.data(), 0, room.size());
    std::byte* out = room.data();
    for (const CocoAnnotation& one : annotations_) {
      if (!fields_.takes(one)) continue;
      const CocoDetails details = details_of(table_.details(one));
      if (!details.wrong_of(CocoValue::kKeypoints).empty()) return wrong(one, CocoValue::kKeypoints, "");
      if (!details.keypoints.empty() && details.keypoints.size() != 12 * points)
        return data_error("the table of annotations is damaged", "format");
      for (std::size_t i = 0; !details.keypoints.empty() && i < points; ++i) {
        float point[3];
        std::memcpy(point, details.keypoints.data() + i * sizeof point, sizeof point);
        const auto visibility = static_cast<std::int64_t>(std::clamp(point[2], 0.F, 1e6F));
        std::memcpy(out + i * 8, are_places ? static_cast<const void*>(point) : &visibility, 8);
      }
      out += row;
    }
    return {};
  }

  Result<void> add_captions() {
    std::string list = "[";
    for (const CocoAnnotation& one : annotations_) {
      FEEDLINE_TRY(const std::string_view caption, caption_of(one));
      list.append(list.size() > 1 ? ", " : "").append(caption);
    }
    return add_text(list + "]");
  }
  Result<void> add_first_caption() {
    if (annotations_.empty()) return data_error("the image has no caption", "format");
    FEEDLINE_TRY(const std::string_view token, caption_of(annotations_.front()));
    text::JsonReader json(token);
    const auto text = json.string();
    if (!text) return std::unexpected(*json.error());
    return add_text(*text);
  }

 private:
  std::int64_t rows() const { return static_cast<std::int64_t>(count_); }

  Result<std::string_view> caption_of(const CocoAnnotation& one) const {
    const CocoDetails details = details_of(table_.details(one));
    if (!details.caption.empty()) return details.caption;
    return wrong(one, CocoValue::kCaption, "the annotation has no caption");
  }
  Result<void> add_text(const std::string& text) {
    FEEDLINE_TRY(const auto room,
                 add_array(record_, 0, field_, {DType::kUint8, {static_cast<std::int64_t>(text.size())}}));
    record_.fields[field_].array.reset();
    if (!text.empty()) std::memcpy(room.data(), text.data(), text.size());
    return {};
  }

  std::unexpected<Error> wrong(const CocoAnnotation& one, CocoValue value, const std::string& lacks) const {
    return wrong_annotation(table_, one, value, lacks);
  }
  std::unexpected<Error> no_category(const CocoAnnotation& one) const {
    return wrong(one, CocoValue::kCategory, "the category_id is not among the file's categories");
  }

  const CocoTable& table_;
  const std::span<const CocoAnnotation> annotations_;
  const CocoFields& fields_;
  const std::size_t field_;
  memory::Record& record_;
  std::size_t count_ = 0;
};

}  // namespace

std::unexpected<Error> wrong_annotation(const CocoTable& table, const CocoAnnotation& one, CocoValue value,
                                        const std::string& lacks) {
  const std::string_view said = details_of(table.details(one)).wrong_of(value);
  Error error = data_error("annotation " + std::to_string(one.id) + " (at byte " + std::to_string(one.offset) +
                               "): " + (said.empty() ? lacks : std::string(said)),
                           "format")
                    .error();
  error.where.offset = one.offset;
  return std::unexpected(std::move(error));
}

Result<CocoFields> CocoFields::choose(const CocoTable& table, const std::vector<std::string>& specs, bool skips_crowd) {
  CocoFields chosen;
  chosen.skips_crowd_ = skips_crowd;
  const bool are_captions = table.boxes() == 0 && table.captions() > 0;
  FEEDLINE_TRY(chosen.fields_,
               choose_parts(specs, kParts,
                            are_captions ? std::span<const Part>(kUsualOfCaptions) : std::span<const Part>(kUsual)));
  for (const PartField& field : chosen.fields_) FEEDLINE_CHECK_OK(check_part(table, field));
  return chosen;
}

Result<void> CocoFields::fill(const CocoTable& table, std::uint64_t image, memory::Record& record) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) FEEDLINE_CHECK_OK(fill_field(table, image, i, record));
  return {};
}

Result<void> CocoFields::fill_field(const CocoTable& table, std::uint64_t image, std::size_t field,
                                    memory::Record& record) const {
  Filling filling(table, table.annotations(image), *this, field, record);
  switch (fields_[field].part) {
    case Part::kBoxes:
      return filling.add_boxes();
    case Part::kLabels:
      return filling.add_labels();
    case Part::kCategoryIds:
      return filling.add_category_ids();
    case Part::kAnnotationIds:
      return filling.add_ids();
    case Part::kArea:
      return filling.add_area();
    case Part::kIsCrowd:
      return filling.add_crowd();
    case Part::kKeypoints:
    case Part::kVisibility:
      return filling.add_points(fields_[field].part == Part::kKeypoints);
    case Part::kCaptions:
      return filling.add_captions();
    case Part::kCaption:
      return filling.add_first_caption();
    case Part::kImageId:
      record.fields[field].value = table.image(image).id;
      return {};
    case Part::kMasks:
    case Part::kMask:
    case Part::kCrowdMask:
      return draw_masks(table, image, *this, field, record);
    default:
      return {};
  }
}

}  // namespace feedline::format
