// SPDX-License-Identifier: Apache-2.0

// Any bytes as a COCO file, a VOC annotation (XML), a YOLO dataset's YAML or labels, or the beginning of an image; the
// first byte selects which. No crash, no read out of bounds, no excessive memory. A COCO file's table does not change
// when it is written and read; each annotation can be drawn or has an error; no filled field is larger than the record
// allows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "format/annotations/coco/coco_fields.h"
#include "format/annotations/coco/coco_scan.h"
#include "format/annotations/image_size.h"
#include "format/annotations/object_rows.h"
#include "format/annotations/voc/voc_annotation.h"
#include "format/annotations/yolo/yaml_reader.h"
#include "format/annotations/yolo/yolo_labels.h"
#include "format/index/memory_reader.h"
#include "text/json_reader.h"

using namespace feedline;

namespace {

constexpr std::uint64_t kMostBytes = 1 << 22;  // per record: larger masks are rejected

void touch(const memory::Record& record) {
  std::uint8_t sum = 0;
  std::uint64_t bytes = 0;
  for (const memory::Record::Field& field : record.fields) {
    for (const std::byte byte : field.bytes)
      sum ^= std::to_integer<std::uint8_t>(byte);  // reads every byte, for the sanitizers
    FEEDLINE_CHECK(!field.array || field.array->bytes() == field.bytes.size());
    bytes += field.bytes.size();
  }
  FEEDLINE_CHECK(bytes <= kMostBytes);
  static volatile std::uint8_t sink;
  sink = sum;
}

void check_fields(const format::CocoTable& table) {
  for (const std::string word : {"boxes", "labels", "category_ids", "area", "keypoints", "visibility", "captions",
                                 "caption", "masks", "mask", "crowd_mask"}) {
    const auto fields = format::CocoFields::choose(table, {word}, word != "masks");
    if (!fields) continue;
    for (std::uint64_t image = 0; image < std::min<std::uint64_t>(table.images(), 16); ++image) {
      memory::Record record;
      record.most_bytes = kMostBytes;
      record.fields.assign(1, {});
      const auto filled = fields->fill(table, image, record);
      FEEDLINE_CHECK(filled || !filled.error().what.empty());
      if (filled) touch(record);
    }
  }
}

void check_coco(std::string_view bytes) {
  const format::MemoryReader reader(bytes);
  text::JsonReader json([&](std::uint64_t offset, std::span<std::byte> block) { return reader.read_at(offset, block); },
                        {.unique_keys = true}, 1);  // in blocks of one byte
  const auto parts = format::scan_coco(json);
  if (!parts) {
    FEEDLINE_CHECK(!parts.error().what.empty() && parts.error().where.offset.value_or(0) <= bytes.size());
    return;
  }
  const storage::ObjectStat version{bytes.size(), 1};
  const auto table = format::CocoTable::build(*parts, version);
  FEEDLINE_CHECK(table.images() <= bytes.size() && table.annotations().size() <= bytes.size());
  FEEDLINE_CHECK(table.file_bytes().size() <= 64 * bytes.size() + 4096);
  const auto again = format::CocoTable::parse(table.file_bytes(), std::make_shared<int>(), version);
  FEEDLINE_CHECK(again && again->fingerprint() == table.fingerprint());
  check_fields(*again);
}

void check_yolo(std::string_view text) {
  for (const std::size_t points : {std::size_t{0}, std::size_t{2}}) {
    const auto objects = format::read_yolo_labels(text, {.classes = 3, .points = points}, {64, 48});
    if (!objects) continue;
    std::vector<format::PartField> fields{{{.name = "boxes"}, format::Part::kBoxes},
                                          {{.name = "masks"}, format::Part::kMasks},
                                          {{.name = "keypoints"}, format::Part::kKeypoints}};
    memory::Record record;
    record.most_bytes = kMostBytes;
    record.fields.assign(fields.size(), {});
    if (format::fill_objects(*objects, fields, 2, record)) touch(record);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  switch (data[0]) {
    case 'v': {
      const auto read = format::read_voc_annotation(text);
      FEEDLINE_CHECK(!read || read->names.size() == read->objects.size());
      break;
    }
    case 'y':
      (void)format::read_yaml(text);
      break;
    case 'l':
      check_yolo(text);
      break;
    case 'i':
      if (const auto size = format::read_frame(std::as_bytes(std::span(text))))
        FEEDLINE_CHECK(size->width > 0 && size->height > 0);
      break;
    default:
      check_coco(text);
  }
  return 0;
}
