// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// The layout of a table with I images, A annotations, C categories, D bytes of details and N bytes of names, stored as
// a frame (cache/frame.h):
//
//     numbers     version of the JSON (size, time, tag: storage/reader.h), I, A, C, D, N, keypoints per object, numbers of
//                 annotations with a caption, a box, an outline, and without an image; fingerprint
//     32 x I      images
//     8 x I       end of each image's annotations
//     56 x A      annotations
//     8 x C       ids of the categories
//     8 x I+C     end of each name in the names: the images' files, the categories
//     D           details (coco_details.h)
//     N           names
static_assert(sizeof(CocoImage) == 32 && sizeof(CocoAnnotation) == 56);

// The fingerprint depends on the images, their order and the categories, but not on the annotations or the path of the
// JSON file.
std::uint64_t fingerprint_of(const CocoParts& parts) {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("coco"));
  for (const CocoImage& image : parts.images) fingerprint.add(static_cast<std::uint64_t>(image.id));
  fingerprint.add(parts.names);
  for (const std::int64_t id : parts.category_ids) fingerprint.add(static_cast<std::uint64_t>(id));
  return fingerprint.value();
}

}  // namespace

CocoTable CocoTable::build(const CocoParts& parts, const storage::ObjectStat& json) {
  cache::FrameBuilder builder(
      kCocoTable, {json.bytes, static_cast<std::uint64_t>(json.mtime_ns), json.tag, parts.images.size(),
                   parts.annotations.size(), parts.category_ids.size(), parts.details.size(), parts.names.size(),
                   parts.points, parts.captions, parts.boxes, parts.outlines, parts.orphans, fingerprint_of(parts)});
  builder.add(parts.images);
  builder.add(parts.annotation_ends);
  builder.add(parts.annotations);
  builder.add(parts.category_ids);
  builder.add(parts.name_ends);
  builder.add(parts.details);
  builder.add(parts.names);
  CocoTable table;
  table.file_ = builder.write(table.buffer_);
  FEEDLINE_CHECK(table.find_sections() && table.is_consistent());
  return table;
}

std::optional<CocoTable> CocoTable::parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                          const storage::ObjectStat& json) {
  CocoTable table;
  table.file_ = file;
  table.pin_ = std::move(pin);
  if (!table.find_sections()) return {};
  const storage::ObjectStat version{table.numbers_[kJsonBytes], static_cast<std::int64_t>(table.numbers_[kJsonTime]),
                                    table.numbers_[kJsonTag]};
  if (version != json || !cache::is_undamaged(file) || !table.is_consistent()) return {};
  return table;
}

// Finds the sections in the order in which they are stored.
bool CocoTable::find_sections() {
  cache::FrameReader reader(file_, kCocoTable, kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) numbers_[i] = reader.number(i);
  const std::uint64_t images = reader.count(kImages), annotations = reader.count(kAnnotations);
  const std::uint64_t categories = reader.count(kCategories);
  const std::uint64_t detail_bytes = reader.count(kDetailBytes), name_bytes = reader.count(kNameBytes);
  images_ = reader.take<CocoImage>(images);
  annotation_ends_ = reader.take<std::uint64_t>(images);
  annotations_ = reader.take<CocoAnnotation>(annotations);
  category_ids_ = reader.take<std::int64_t>(categories);
  names_.ends = reader.take<std::uint64_t>(images + categories);
  details_ = reader.take<std::byte>(detail_bytes);
  const auto names = reader.take<char>(name_bytes);
  names_.text = {names.data(), names.size()};
  return reader.is_whole();
}

bool CocoTable::is_consistent() const {
  if (!names_.is_consistent() || !std::ranges::is_sorted(annotation_ends_)) return false;
  if ((annotation_ends_.empty() ? 0 : annotation_ends_.back()) != annotations_.size()) return false;
  for (const CocoImage& image : images_)
    if (image.names >= images_.size()) return false;
  return std::ranges::all_of(annotations_, [this](const CocoAnnotation& one) {
    const bool is_of_one = one.category == CocoAnnotation::kNoCategory || one.category < category_ids_.size();
    return is_of_one && one.details <= details_.size() && one.detail_bytes <= details_.size() - one.details;
  });
}

}  // namespace feedline::format
