// SPDX-License-Identifier: Apache-2.0
#pragma once

// The images and annotations in a COCO file, as a table grouped by image. The table has the same bytes in memory and on
// disk.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/frame.h"
#include "format/annotations/outline.h"
#include "format/folder/text_list.h"
#include "memory/record.h"
#include "storage/reader.h"

namespace feedline::format {

// Identifies the files of COCO tables. The number is increased when the layout in coco_table.cpp changes.
inline constexpr cache::FrameKind kCocoTable{0x6f'63'6f'63'64'65'65'66, 1};  // "feedcoco"

struct CocoImage {
  std::int64_t id = 0;
  std::uint64_t offset = 0;  // in the JSON
  std::uint32_t width = 0, height = 0;
  std::uint32_t names = 0, unused = 0;  // position of the image in the JSON, the index of its name
};

struct CocoAnnotation {
  static constexpr std::uint32_t kNoCategory = ~std::uint32_t{0};
  enum Flag : std::uint32_t { kCrowd = 1, kHasBox = 2, kHasArea = 4 };

  std::int64_t id = 0;
  std::uint64_t offset = 0;              // in the JSON
  std::uint64_t details = 0;             // offset of its details
  std::uint32_t detail_bytes = 0;        // layout in coco_details.h
  std::uint32_t category = kNoCategory;  // index into the categories, sorted by id
  std::array<float, 4> box{};            // left, top, right, bottom
  float area = 0;
  std::uint32_t flags = 0;
  bool is_crowd() const { return (flags & kCrowd) != 0; }
};

// The contents from which a table is built. Images and annotations must be sorted.
struct CocoParts {
  std::vector<CocoImage> images;               // sorted by id
  std::vector<std::uint64_t> annotation_ends;  // one per image
  std::vector<CocoAnnotation> annotations;     // grouped by image, in the order of the JSON
  std::vector<std::int64_t> category_ids;      // sorted
  std::vector<std::byte> details;
  std::string names;  // file names in the order of the JSON, then names of categories
  std::vector<std::uint64_t> name_ends;
  std::uint64_t points = 0;               // keypoints per object
  std::uint64_t captions = 0;             // number of annotations with a caption
  std::uint64_t boxes = 0, outlines = 0;  // with a box, with an outline
  std::uint64_t orphans = 0;              // annotations whose image is not in the file
};

// Immutable and thread-safe.
class CocoTable {
 public:
  static CocoTable build(const CocoParts& parts, const storage::ObjectStat& json);
  // Parses a table file, whose bytes `pin` keeps valid. Returns nullopt if the file is incomplete or damaged, belongs
  // to a different version of the JSON file, or has offsets out of bounds.
  static std::optional<CocoTable> parse(std::span<const std::byte> file, std::shared_ptr<const void> pin,
                                        const storage::ObjectStat& json);

  std::uint64_t images() const { return images_.size(); }
  std::uint64_t points() const { return numbers_[kPoints]; }
  std::uint64_t captions() const { return numbers_[kCaptions]; }
  std::uint64_t boxes() const { return numbers_[kBoxes]; }
  std::uint64_t outlines() const { return numbers_[kOutlines]; }
  std::uint64_t orphans() const { return numbers_[kOrphans]; }
  // Requires: valid indexes.
  const CocoImage& image(std::uint64_t i) const { return images_[i]; }
  std::string_view file_name(std::uint64_t i) const { return names_[images_[i].names]; }
  std::span<const CocoAnnotation> annotations() const { return annotations_; }
  std::span<const CocoAnnotation> annotations(std::uint64_t image) const {
    const std::uint64_t begin = image == 0 ? 0 : annotation_ends_[image - 1];
    return annotations_.subspan(begin, annotation_ends_[image] - begin);
  }
  std::span<const std::byte> details(const CocoAnnotation& of) const {
    return details_.subspan(of.details, of.detail_bytes);
  }
  std::span<const std::int64_t> category_ids() const { return category_ids_; }
  std::string_view category_name(std::uint64_t i) const { return names_[images() + i]; }
  std::uint64_t fingerprint() const { return numbers_[kFingerprint]; }  // hash of the images and their order
  std::span<const std::byte> file_bytes() const { return file_; }
  bool is_mapped() const { return pin_ != nullptr; }

 private:
  enum Number : std::size_t {
    kJsonBytes,
    kJsonTime,
    kJsonTag,
    kImages,
    kAnnotations,
    kCategories,
    kDetailBytes,
    kNameBytes,
    kPoints,
    kCaptions,
    kBoxes,
    kOutlines,
    kOrphans,
    kFingerprint,
    kNumbers
  };
  CocoTable() = default;
  bool find_sections();
  bool is_consistent() const;

  memory::ByteBuffer buffer_;  // owns the bytes, unless pin_ does
  std::shared_ptr<const void> pin_;
  std::span<const std::byte> file_;
  std::array<std::uint64_t, kNumbers> numbers_{};
  std::span<const CocoImage> images_;
  std::span<const std::uint64_t> annotation_ends_;
  std::span<const CocoAnnotation> annotations_;
  std::span<const std::int64_t> category_ids_;
  std::span<const std::byte> details_;
  TextList names_;
};

}  // namespace feedline::format
