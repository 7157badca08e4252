// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/annotation_part.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "format/field_kind.h"
#include "memory/pixels.h"

namespace feedline::format {
namespace {

struct Known {
  Part part;
  std::string_view name;
  FieldKind kind;
  bool is_per_box = false;
  bool is_stack = false;
};

constexpr std::array kAll{Known{Part::kImage, "image", FieldKind::kImage},
                          Known{Part::kBoxes, "boxes", FieldKind::kBoxes},
                          Known{Part::kLabels, "labels", FieldKind::kArray, true},
                          Known{Part::kCategoryIds, "category_ids", FieldKind::kArray, true},
                          Known{Part::kAnnotationIds, "annotation_ids", FieldKind::kArray, true},
                          Known{Part::kArea, "area", FieldKind::kArray, true},
                          Known{Part::kIsCrowd, "iscrowd", FieldKind::kArray, true},
                          Known{Part::kImageId, "image_id", FieldKind::kInteger},
                          Known{Part::kMasks, "masks", FieldKind::kMask, false, true},
                          Known{Part::kMask, "mask", FieldKind::kMask},
                          Known{Part::kCrowdMask, "crowd_mask", FieldKind::kMask},
                          Known{Part::kObjectMask, "object_mask", FieldKind::kMask},
                          Known{Part::kKeypoints, "keypoints", FieldKind::kKeypoints},
                          Known{Part::kVisibility, "visibility", FieldKind::kArray, true},
                          Known{Part::kCaptions, "captions", FieldKind::kJson},
                          Known{Part::kCaption, "caption", FieldKind::kText},
                          Known{Part::kDifficult, "difficult", FieldKind::kArray, true},
                          Known{Part::kTruncated, "truncated", FieldKind::kArray, true},
                          Known{Part::kPoses, "poses", FieldKind::kJson}};

const Known& known_of(Part part) { return *std::ranges::find(kAll, part, &Known::part); }

PartField field_of(Part part, std::string name) {
  const Known& known = known_of(part);
  PartField field{{.name = std::move(name), .kind = known.kind}, part};
  if (known.is_per_box) field.description.array.shape = {kAnyLength};
  if (known.is_stack) field.description.array.shape = {kAnyLength, kAnyLength, kAnyLength};
  return field;
}

std::string names_of(std::span<const Part> parts) {
  std::string text;
  for (const Part part : parts) text.append(text.empty() ? "" : ", ").append(name_of(part));
  return text;
}

Result<std::span<std::byte>> add_bytes(memory::Record& record, std::size_t pieces, std::size_t field,
                                       std::uint64_t bytes, std::size_t slack) {
  if (record.more.size() < pieces + record.fields.size()) record.more.resize(pieces + record.fields.size());
  record.bytes_read += bytes;
  if (record.bytes_read > record.most_bytes) return memory::too_large(record.bytes_read, record.most_bytes);
  FEEDLINE_TRY(const auto room, record.more[pieces + field].make_room(bytes + slack, record.most_bytes + slack));
  return room.first(bytes);
}

}  // namespace

std::string_view name_of(Part part) { return known_of(part).name; }

Result<std::vector<PartField>> choose_parts(const std::vector<std::string>& specs, std::span<const Part> known,
                                            std::span<const Part> usual) {
  std::vector<PartField> fields;
  if (specs.empty())
    for (const Part part : usual) fields.push_back(field_of(part, std::string(name_of(part))));
  for (const std::string& spec : specs) {
    const std::size_t equals = spec.find('=');
    const std::string word = equals == spec.npos ? spec : spec.substr(equals + 1);
    const auto part = std::ranges::find(known, std::string_view(word), [](Part one) { return name_of(one); });
    if (part == known.end())
      return config_error("fields: the annotations have no '" + word + "'; they have " + names_of(known));
    std::string name = equals == spec.npos ? word : spec.substr(0, equals);
    if (name.empty()) return config_error("fields: an empty name in '" + spec + "'");
    for (const PartField& other : fields)
      if (other.description.name == name)
        return config_error("fields: two fields are called '" + name + "'; put NAME= before one of them");
    fields.push_back(field_of(*part, std::move(name)));
  }
  return fields;
}

bool has_part(std::span<const PartField> fields, Part part) {
  return std::ranges::find(fields, part, &PartField::part) != fields.end();
}

std::vector<FieldDescription> descriptions_of(std::span<const PartField> fields) {
  std::vector<FieldDescription> descriptions;
  for (const PartField& field : fields) descriptions.push_back(field.description);
  return descriptions;
}

Result<std::span<std::byte>> add_array(memory::Record& record, std::size_t pieces, std::size_t field, ArraySpec spec) {
  FEEDLINE_TRY(const auto room, add_bytes(record, pieces, field, spec.bytes(), 0));
  record.fields[field].bytes = room;
  record.fields[field].array = spec;
  return room;
}

Result<std::span<std::uint8_t>> add_labels(memory::Record& record, std::size_t pieces, std::size_t field, int height,
                                           int width, int label_bytes) {
  const auto stride = static_cast<std::size_t>(width) * static_cast<std::size_t>(label_bytes);
  FEEDLINE_TRY(const auto room, add_bytes(record, pieces, field, static_cast<std::uint64_t>(height) * stride,
                                          memory::PixelBuffer::kRowSlack));
  std::memset(room.data(), 0, room.size());
  auto* const data = reinterpret_cast<std::uint8_t*>(room.data());
  record.fields[field].pixels = {data, width, height, label_bytes, stride};
  return std::span(data, room.size());
}

Result<std::span<std::uint8_t>> add_label_stack(memory::Record& record, std::size_t pieces, std::size_t field,
                                                std::size_t count, int height, int width) {
  const std::uint64_t plane = static_cast<std::uint64_t>(height) * static_cast<std::uint64_t>(width);
  // larger than any limit in bytes, and far from overflow
  if (plane > static_cast<std::uint64_t>(memory::PixelBuffer::kMaxPixels) || count > (std::uint64_t{1} << 32))
    return memory::too_large(plane, record.most_bytes);
  FEEDLINE_TRY(const auto room, add_bytes(record, pieces, field, count * plane, memory::PixelBuffer::kRowSlack));
  if (!room.empty()) std::memset(room.data(), 0, room.size());
  record.fields[field].bytes = room;
  record.fields[field].array = ArraySpec{DType::kUint8, {static_cast<std::int64_t>(count), height, width}};
  return std::span(reinterpret_cast<std::uint8_t*>(room.data()), room.size());
}

}  // namespace feedline::format
