// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/value_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "decode/audio/audio_reader.h"
#include "decode/image_formats.h"
#include "format/field_kind.h"
#include "format/lmdb/datum.h"
#include "format/shards/member_files.h"
#include "memory/npy_header.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Problem = std::unexpected<ValueProblem>;
using File = SampleFiles::File;

Problem problem(std::string_view code, const LmdbField& field, const std::string& what) {
  return Problem({code, data_error("field '" + field.description.name + "': " + what, "format").error()});
}

// Converts a Datum that is not an image, (channels, height, width), to a .npy file. Requires: the Datum's size matches
// its dimensions.
std::string array_header(const Datum& datum) {
  const DType dtype = datum.floats.empty() ? DType::kUint8 : DType::kFloat32;
  return memory::npy_header({dtype, {datum.channels, datum.height, datum.width}});
}

std::uint64_t array_bytes(const Datum& datum) {
  return datum.floats.empty() ? datum.data.size() : datum.float_count * sizeof(float);
}

void write_array(const Datum& datum, const std::string& header, std::byte* out) {
  std::memcpy(out, header.data(), header.size());
  out += header.size();
  if (datum.floats.empty()) std::memcpy(out, datum.data.data(), datum.data.size());
  for (const Bytes run : datum.floats) {
    std::memcpy(out, run.data(), run.size());
    out += run.size();
  }
}

std::string extension_of(const LmdbField& field, const KeyPattern& pattern, Bytes value) {
  const FieldKind kind = field.description.kind;
  if (const std::string_view image = decode::image_extension(value); !image.empty()) return std::string(image);
  const std::size_t dot = pattern.suffix.rfind('.');
  if (dot != std::string::npos && dot + 1 < pattern.suffix.size()) return pattern.suffix.substr(dot + 1);
  if (kind == FieldKind::kText) return "txt";
  if (kind == FieldKind::kJson) return "json";
  if (kind == FieldKind::kArray) return "npy";
  if (kind == FieldKind::kInteger) return "cls";
  if (kind == FieldKind::kAudio) return std::string(decode::audio_extension_to_store(value));
  return std::string(kind == FieldKind::kImage || kind == FieldKind::kMask ? decode::extension_to_store(value) : "bin");
}

}  // namespace

std::expected<void, ValueProblem> ValueReader::read_field(const LmdbField& field, Bytes value, memory::Record& record,
                                                          memory::Record::Field& out) const {
  const FieldKind kind = field.description.kind;
  if (field.part == ValuePart::kWhole) {
    if (value.empty() && !may_be_empty(kind)) return problem("empty_value", field, "an empty file");
    out.bytes = value;
    if (kind != FieldKind::kInteger) return {};
    const auto number = parse_integer(value);
    if (!number) return problem("not_an_integer", field, not_an_integer(value));
    out.value = *number;
    return {};
  }
  const auto datum = parse_datum(value);
  if (!datum) return problem("not_a_datum", field, "the value is not a Datum, unlike the first values");
  if (field.part == ValuePart::kDatumLabel) {
    out.value = datum->label;
    return {};
  }
  if (datum->encoded) {
    if (datum->data.empty()) return problem("empty_value", field, "an empty file");
    if (kind == FieldKind::kArray)
      return problem("value_differs", field, "the value is an image file, but the first values are arrays");
    out.bytes = datum->data;
    return {};
  }
  if (!datum->is_whole())
    return problem("damaged_datum", field, "the number of values in the Datum does not match its dimensions");
  if (datum->is_pixels() != (kind != FieldKind::kArray))
    return problem(
        "value_differs", field,
        std::string("the Datum is ") + (datum->is_pixels() ? "an image" : "an array") + ", unlike the first");
  record.more.resize(std::max<std::size_t>(record.more.size(), 1));
  if (datum->is_pixels()) {
    auto pixels = pixels_of(*datum, record.more.front(), record.most_bytes);
    if (!pixels) return Problem({"damaged_datum", std::move(pixels).error()});
    out.pixels = *pixels;
    return {};
  }
  const std::string header = array_header(*datum);
  const auto room = record.more.front().make_room(header.size() + array_bytes(*datum), record.most_bytes);
  if (!room) return Problem({"too_large", room.error()});
  write_array(*datum, header, room->data());
  out.bytes = *room;
  return {};
}

std::expected<void, ValueProblem> ValueReader::read(std::span<const std::optional<Bytes>> values,
                                                    memory::Record& record) const {
  record.fields.assign(layout_.fields.size(), {});
  for (std::size_t i = 0; i < layout_.fields.size(); ++i) {
    const LmdbField& field = layout_.fields[i];
    const auto& value = values[field.source];
    record.fields[i].absent = !value;
    if (!value && !field.description.may_be_absent) {
      const KeyPattern& pattern = layout_.sources[field.source];
      return problem("missing_field", field,
                     "the sample has no key '" + pattern.prefix + "{key}" + pattern.suffix + "'");
    }
    if (!value) continue;
    auto done = read_field(field, *value, record, record.fields[i]);
    if (!done) return done;
  }
  return {};
}

Result<std::vector<File>> ValueReader::files(std::span<const std::optional<Bytes>> values) const {
  MemberFiles files;
  const auto add = [&](const LmdbField& field, const std::string& extension, Bytes bytes) {
    const FieldKind kind = field.description.kind;
    const bool is_usual = kind == FieldKind::kImage || kind == FieldKind::kInteger;  // reserved for the fields of a tar
    files.add(plain_name(field.description.name) + "." + extension, is_usual ? extension : "",
              {bytes.begin(), bytes.end()});
  };
  for (const LmdbField& field : layout_.fields) {
    const auto& value = values[field.source];
    if (!value) continue;
    if (field.part == ValuePart::kWhole) {
      add(field, extension_of(field, layout_.sources[field.source], *value), *value);
      continue;
    }
    const auto datum = parse_datum(*value);
    if (!datum) return data_error("the value is not a Datum", "format");
    if (field.part == ValuePart::kDatumLabel) {
      const std::string label = std::to_string(datum->label);
      add(field, "cls", std::as_bytes(std::span(label)));
    } else if (datum->encoded) {
      add(field, extension_of(field, {}, datum->data), datum->data);
    } else if (!datum->is_whole()) {
      return data_error("the number of values in the Datum does not match its dimensions", "format");
    } else if (datum->is_pixels()) {
      return config_error(
          "the Datum contains decoded pixels, which cannot be written as a member of a tar; "
          "feedline.pack_pixels writes them unchanged");
    } else {
      const std::string header = array_header(*datum);
      std::vector<std::byte> file(header.size() + array_bytes(*datum));
      write_array(*datum, header, file.data());
      add(field, "npy", file);
    }
  }
  auto made = files.take();
  if (made.empty()) return data_error("the sample has no field", "format");
  return made;
}

}  // namespace feedline::format
