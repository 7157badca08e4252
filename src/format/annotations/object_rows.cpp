// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/object_rows.h"

#include <cstring>
#include <utility>

#include "format/annotations/outline.h"

namespace feedline::format {
namespace {

class Rows {
 public:
  Rows(const ImageObjects& objects, std::size_t field, std::size_t pieces, memory::Record& record)
      : objects_(objects), field_(field), pieces_(pieces), record_(record) {}

  // `data` returns the address of an object's row, which has `bytes` bytes.
  template <typename Data>
  Result<void> add(ArraySpec spec, std::size_t bytes, Data data) {
    FEEDLINE_TRY(const auto room, add_array(record_, pieces_, field_, spec));
    std::byte* out = room.data();
    for (const ImageObject& object : objects_.objects) {
      if (bytes > 0) std::memcpy(out, data(object), bytes);
      out += bytes;
    }
    return {};
  }
  Result<void> add_integers(std::int64_t ImageObject::*member) {
    return add({DType::kInt64, {count()}}, sizeof(std::int64_t),
               [member](const ImageObject& object) { return &(object.*member); });
  }
  Result<void> add_boxes() {
    return add({DType::kFloat32, {count(), 4}}, 4 * sizeof(float),
               [](const ImageObject& object) { return object.box.data(); });
  }
  Result<void> add_keypoints() {
    return add({DType::kFloat32, {count(), points(), 2}}, objects_.points * 2 * sizeof(float),
               [](const ImageObject& object) { return object.keypoints.data(); });
  }
  Result<void> add_visibility() {
    return add({DType::kInt64, {count(), points()}}, objects_.points * sizeof(std::int64_t),
               [](const ImageObject& object) { return object.visibility.data(); });
  }
  Result<void> add_masks();
  Result<void> add_poses();

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(objects_.objects.size()); }
  std::int64_t points() const { return static_cast<std::int64_t>(objects_.points); }

  const ImageObjects& objects_;
  const std::size_t field_, pieces_;
  memory::Record& record_;
};

Result<void> Rows::add_masks() {
  thread_local OutlineScratch scratch;
  FEEDLINE_TRY(const auto planes,
               add_label_stack(record_, pieces_, field_, objects_.objects.size(), objects_.height, objects_.width));
  std::uint8_t* plane = planes.data();
  std::vector<std::int32_t> fifths;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < objects_.objects.size(); ++i) {
    const ImageObject& object = objects_.objects[i];
    const auto wrong = [i](const std::string& why) {
      return data_error("object " + std::to_string(i) + " " + why, "format");
    };
    if (object.polygon.empty()) return wrong("has a box but no polygon to draw a mask from");
    fifths.clear();
    for (const double value : object.polygon) {
      const auto fifth = to_fifths(value);
      if (!fifth) return wrong("has a coordinate far outside any image");
      fifths.push_back(*fifth);
    }
    bytes.clear();
    OutlineWriter(bytes).add(1);
    OutlineWriter(bytes).add_polygon(fifths);
    FEEDLINE_CHECK_OK(draw_outline({OutlineKind::kPolygons, bytes}, objects_.height, objects_.width, scratch, plane));
    plane += static_cast<std::size_t>(objects_.height) * static_cast<std::size_t>(objects_.width);
  }
  return {};
}

// Adds the poses as a JSON list.
Result<void> Rows::add_poses() {
  std::string text = "[";
  for (const ImageObject& object : objects_.objects) {
    text += text.size() > 1 ? ", \"" : "\"";
    for (const char c : object.pose) {
      if (c == '"' || c == '\\') text += '\\';
      text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    text += '"';
  }
  text += "]";
  FEEDLINE_TRY(const auto room,
               add_array(record_, pieces_, field_, {DType::kUint8, {static_cast<std::int64_t>(text.size())}}));
  record_.fields[field_].array.reset();
  std::memcpy(room.data(), text.data(), text.size());
  return {};
}

}  // namespace

Result<void> fill_objects(const ImageObjects& objects, std::span<const PartField> fields, std::size_t pieces,
                          memory::Record& record) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Rows rows(objects, i, pieces, record);
    Result<void> done;
    switch (fields[i].part) {
      case Part::kBoxes:
        done = rows.add_boxes();
        break;
      case Part::kLabels:
        done = rows.add_integers(&ImageObject::label);
        break;
      case Part::kDifficult:
        done = rows.add_integers(&ImageObject::difficult);
        break;
      case Part::kTruncated:
        done = rows.add_integers(&ImageObject::truncated);
        break;
      case Part::kPoses:
        done = rows.add_poses();
        break;
      case Part::kMasks:
        done = rows.add_masks();
        break;
      case Part::kKeypoints:
        done = rows.add_keypoints();
        break;
      case Part::kVisibility:
        done = rows.add_visibility();
        break;
      default:
        break;
    }
    if (!done) return done;
  }
  return {};
}

}  // namespace feedline::format
