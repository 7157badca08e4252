// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/image_folder.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "decode/turned_targets.h"
#include "format/sources/sample_name.h"
#include "memory/npy_header.h"

namespace feedline::format {

std::string folder_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return std::string(path.substr(0, std::max<std::size_t>(slash, 1)));
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view stem_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::size_t begin = path.rfind('/') + 1;
  return dot == path.npos || dot <= begin ? path : path.substr(0, dot);
}

std::string extension_of(std::string_view path) {
  const std::string_view stem = stem_of(path);
  return stem.size() == path.size() ? std::string() : to_lower(path.substr(stem.size() + 1));
}

Result<void> take_image(std::span<const PartField> fields, std::span<const std::byte> bytes, memory::Record& record) {
  if (bytes.empty()) return data_error("an empty file", "format");
  record.bytes_read += bytes.size();
  if (record.bytes_read > record.most_bytes) return memory::too_large(record.bytes_read, record.most_bytes);
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].part == Part::kImage) record.fields[i].bytes = bytes;
  return {};
}

Result<SampleFiles> files_of(std::span<const PartField> fields, std::string_view path, const memory::Record& record) {
  SampleFiles sample{std::string(stem_of(path)), std::nullopt, {}};
  const auto add = [&](const std::string& extension, std::span<const std::byte> bytes) {
    sample.files.push_back({extension, {bytes.begin(), bytes.end()}});
  };
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldDescription& description = fields[i].description;
    const memory::Record::Field& field = record.fields[i];
    if (field.pixels.data != nullptr || description.array.shape.dims() == 3)
      return config_error("fields: '" + description.name +
                          "' is drawn from outlines and cannot be written as a file; omit it when packing");
    if (description.kind == FieldKind::kImage) {
      add(extension_of(path), field.bytes);
    } else if (description.kind == FieldKind::kInteger) {
      const std::string text = std::to_string(field.value);
      add(to_lower(description.name) + ".cls", std::as_bytes(std::span(text)));
    } else if (field.array && decode::needs_turn(field.frame, false)) {
      // readers of the file do not know the frame: store numbers that fit the stored image
      std::vector<float> numbers(field.bytes.size() / sizeof(float));
      if (!numbers.empty()) std::memcpy(numbers.data(), field.bytes.data(), field.bytes.size());
      const decode::FrameTurn turn = decode::turn_of(field.frame);
      if (description.kind == FieldKind::kBoxes)
        decode::turn_boxes(turn, BoxFormat::kXyxy, std::span(numbers));
      else
        decode::turn_points(turn, std::span(numbers));
      add(to_lower(description.name) + ".npy", memory::npy_file(*field.array, std::as_bytes(std::span(numbers))));
    } else if (field.array) {
      add(to_lower(description.name) + ".npy", memory::npy_file(*field.array, field.bytes));
    } else {
      const std::string_view end = description.kind == FieldKind::kMask   ? ".png"
                                   : description.kind == FieldKind::kText ? ".txt"
                                                                          : ".json";
      add(to_lower(description.name).append(end), field.bytes);
    }
  }
  return sample;
}

}  // namespace feedline::format
