// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_masks.h"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "memory/pixels.h"

namespace feedline::format {
namespace {

// Each thread reuses this object for all samples, since a dataset can have millions of outlines.
struct MaskScratch {
  OutlineScratch outline;
  std::vector<std::uint8_t> plane;
};
MaskScratch& scratch() {
  thread_local MaskScratch own_scratch;
  return own_scratch;
}

class Masks {
 public:
  Masks(const CocoTable& table, std::uint64_t image) : table_(table), image_(table.image(image)) {}

  Result<void> check_size() const {
    const std::int64_t pixels = std::int64_t{image_.width} * std::int64_t{image_.height};
    if (pixels > 0 && pixels <= memory::PixelBuffer::kMaxPixels) return {};
    const std::string location = "the image object at byte " + std::to_string(image_.offset) + " of the JSON file";
    if (pixels > 0)
      return data_error(location + " has the size " + std::to_string(image_.width) + " x " +
                            std::to_string(image_.height) + ", which is over the limit of " +
                            std::to_string(memory::PixelBuffer::kMaxPixels) + " pixels for masks",
                        "format");
    return data_error(location + " has no valid width and height, which masks require (they read as " +
                          std::to_string(image_.width) + " and " + std::to_string(image_.height) +
                          "): set them to at least 1 (not to -1, 0 or null)",
                      "format");
  }
  int height() const { return static_cast<int>(image_.height); }
  int width() const { return static_cast<int>(image_.width); }
  std::size_t pixels() const { return static_cast<std::size_t>(height()) * static_cast<std::size_t>(width()); }

  Result<void> draw(const CocoAnnotation& one, std::uint8_t* plane) const {
    const CocoDetails details = details_of(table_.details(one));
    if (details.outline.kind == OutlineKind::kNone)
      return wrong_annotation(table_, one, CocoValue::kOutline, "the annotation has no segmentation");
    auto drawn = draw_outline(details.outline, height(), width(), scratch().outline, plane);
    if (!drawn) return wrong_annotation(table_, one, CocoValue::kOutline, drawn.error().what);
    return {};
  }

  template <typename Label>
  Result<void> draw_labels(std::span<const CocoAnnotation> annotations, const CocoFields& fields,
                           std::uint8_t* out) const {
    std::vector<std::uint8_t>& plane = scratch().plane;
    plane.resize(pixels());
    for (const CocoAnnotation& one : annotations) {
      if (!fields.takes(one)) continue;
      if (one.category == CocoAnnotation::kNoCategory)
        return wrong_annotation(table_, one, CocoValue::kCategory,
                                "the category_id is not among the file's categories");
      std::memset(plane.data(), 0, plane.size());
      FEEDLINE_CHECK_OK(draw(one, plane.data()));
      put<Label>(static_cast<Label>(one.category + 1), plane, out);
    }
    return {};
  }

 private:
  template <typename Label>
  static void put(Label label, std::span<const std::uint8_t> plane, std::uint8_t* out) {
    constexpr Label kSeveral = std::numeric_limits<Label>::max();
    for (std::size_t i = 0; i < plane.size(); ++i) {
      if (plane[i] == 0) continue;
      Label there;
      std::memcpy(&there, out + i * sizeof there, sizeof there);
      const Label now = there == 0 ? label : kSeveral;
      std::memcpy(out + i * sizeof now, &now, sizeof now);
    }
  }

  const CocoTable& table_;
  const CocoImage& image_;
};

}  // namespace

Result<void> draw_masks(const CocoTable& table, std::uint64_t image, const CocoFields& fields, std::size_t field,
                        memory::Record& record) {
  const Masks masks(table, image);
  FEEDLINE_CHECK_OK(masks.check_size());
  const auto annotations = table.annotations(image);
  const Part part = fields.fields()[field].part;
  if (part == Part::kMasks) {
    std::size_t count = 0;
    for (const CocoAnnotation& one : annotations) count += fields.takes(one) ? 1 : 0;
    FEEDLINE_TRY(const auto planes, add_label_stack(record, 0, field, count, masks.height(), masks.width()));
    std::uint8_t* plane = planes.data();
    for (const CocoAnnotation& one : annotations) {
      if (!fields.takes(one)) continue;
      FEEDLINE_CHECK_OK(masks.draw(one, plane));
      plane += masks.pixels();
    }
    return {};
  }
  // 0 and the overlap marker are not labels
  const bool is_wide =
      part == Part::kMask && table.category_ids().size() > std::numeric_limits<std::uint8_t>::max() - 1;
  if (is_wide && table.category_ids().size() > std::numeric_limits<std::uint16_t>::max() - 1)
    return config_error("fields: 'mask' has 16 bits per label; there are too many categories");
  FEEDLINE_TRY(const auto out, add_labels(record, 0, field, masks.height(), masks.width(), is_wide ? 2 : 1));
  if (part == Part::kMask)
    return is_wide ? masks.draw_labels<std::uint16_t>(annotations, fields, out.data())
                   : masks.draw_labels<std::uint8_t>(annotations, fields, out.data());
  for (const CocoAnnotation& one : annotations)
    if (one.is_crowd()) FEEDLINE_CHECK_OK(masks.draw(one, out.data()));
  return {};
}

}  // namespace feedline::format
