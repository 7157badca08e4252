// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_format.h"

#include <utility>

#include "format/annotations/coco/coco_source.h"
#include "format/annotations/image_folder.h"
#include "format/annotations/image_size.h"

namespace feedline::format {

Result<std::shared_ptr<const Format>> CocoFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const bool skips_crowd, check_coco_options(options));
  FEEDLINE_TRY(CocoTable table, open_coco_table(source, options));
  if (table.images() == 0) return config_error("the JSON file lists no images");
  FEEDLINE_TRY(CocoFields fields, CocoFields::choose(table, options.fields, skips_crowd));
  std::string images;
  if (has_part(fields.fields(), Part::kImage)) {
    FEEDLINE_TRY(images, find_images(source, table, options));
  }
  return std::shared_ptr<const Format>(
      new CocoFormat(source, options, std::move(images), std::move(table), std::move(fields)));
}

CocoFormat::CocoFormat(std::string source, OpenOptions options, std::string images, CocoTable table, CocoFields fields)
    : AnnotationFormat(std::move(source), std::move(options), fields.fields()),
      images_(std::move(images)),
      table_(std::move(table)),
      choice_(std::move(fields)) {
  for (std::uint64_t i = 0; i < table_.category_ids().size(); ++i) classes_.emplace_back(table_.category_name(i));
  fingerprint_ = compute_fingerprint();
}

std::uint64_t CocoFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(table_.fingerprint());
  fingerprint.add(std::string_view(choice_.skips_crowd() ? "skip" : "keep"));
  add_parts(fingerprint);
  return fingerprint.value();
}

Result<std::vector<std::string>> CocoFormat::paths(std::uint64_t index) const {
  if (!needs_image()) return std::vector<std::string>();
  return std::vector{options_.storage->below(images_, table_.file_name(index))};
}

// Reads nothing from storage: the table has all fields except the image.
Result<bool> CocoFormat::fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                                    std::string& file) const {
  if (parts_[field].part == Part::kImage) return false;
  file = source_;
  FEEDLINE_CHECK_OK(choice_.fill_field(table_, index, field, record));
  std::swap(record.fields.front(), record.fields[field]);
  return true;
}

Result<void> CocoFormat::fill(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                              memory::Record& record, std::size_t& /*piece*/) const {
  if (needs_image()) FEEDLINE_CHECK_OK(take_image(parts_, pieces.front(), record));
  if (auto filled = choice_.fill(table_, index, record); !filled) {
    if (filled.error().where.offset) filled.error().where.shard = source_;
    return filled;
  }
  if (!needs_image()) return {};
  const CocoImage& image = table_.image(index);
  const ImageSize stated{static_cast<int>(image.width), static_cast<int>(image.height)};
  set_frame(parts_, frame_by_size(pieces.front(), stated), record);
  return {};
}

std::string CocoFormat::summary() const {
  std::string text = "images in '" + images_ + "'";
  if (!needs_image()) text = "no images are read";
  std::uint64_t crowd = 0;
  for (const CocoAnnotation& one : table_.annotations()) crowd += one.is_crowd() ? 1 : 0;
  if (choice_.skips_crowd() && crowd > 0)
    text += "\n" + std::to_string(crowd) + " crowd annotations were skipped; crowd=\"keep\" includes them";
  if (table_.orphans() > 0)
    text += "\n" + std::to_string(table_.orphans()) + " annotations were skipped: their images are not in the file";
  return text;
}

}  // namespace feedline::format
