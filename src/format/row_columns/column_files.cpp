// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/column_files.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "decode/image_formats.h"
#include "format/row_columns/column_values.h"
#include "format/shards/member_files.h"
#include "format/tfrecord/feature_survey.h"
#include "memory/npy_header.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using File = SampleFiles::File;

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class FileWriter {
 public:
  Parsed<void> add(const Column& column, const FieldDescription* field, Bytes value) {
    name_ = plain_name(column.name);
    switch (column.kind) {
      case ColumnKind::kNumber:
        return add_number(column, field, value);
      case ColumnKind::kArray:
        return add_array(array_in(value, column));
      case ColumnKind::kPixels: {
        const auto pixels = pixels_in(value);
        return pixels ? add_array(array_of(*pixels)) : std::unexpected(pixels.error());
      }
      case ColumnKind::kImages:
        return add_images(column, value);
      case ColumnKind::kRefused:
        return {};
      default:
        break;
    }
    const std::string_view end = end_of(column, field, value);
    const bool is_first = field != nullptr && (field->kind == FieldKind::kImage || field->kind == FieldKind::kInteger);
    files_.add(name_ + "." + std::string(end), is_first ? end : "", {value.begin(), value.end()});
    return {};
  }
  std::vector<File> take() { return files_.take(); }

 private:
  static std::string_view end_of(const Column& column, const FieldDescription* field, Bytes value) {
    if (const std::string_view image = decode::image_extension(value); !image.empty()) return image;
    switch (column.kind) {
      case ColumnKind::kText:
      case ColumnKind::kReal:
        return "txt";
      case ColumnKind::kDigits:
        return "cls";
      case ColumnKind::kJson:
        return "json";
      case ColumnKind::kImage:
        return decode::extension_to_store(value);
      default:
        break;
    }
    return field == nullptr ? "bin" : extension_of(field->kind, value);
  }

  Parsed<void> add_number(const Column& column, const FieldDescription* field, Bytes value) {
    const auto number = number_in(value, column);
    const auto integer = number ? integer_of(*column.dtype, number->data) : std::unexpected(number.error());
    if (!number || !integer) return add_array(number);
    const bool is_field = field != nullptr && field->kind == FieldKind::kInteger;
    files_.add(name_ + ".cls", is_field ? "cls" : "", bytes_of(std::to_string(*integer)));
    return {};
  }

  Parsed<void> add_array(const Parsed<StoredArray>& array) {
    if (!array) return std::unexpected(array.error());
    files_.add(name_ + ".npy", "", memory::npy_file(array->spec, array->data));
    return {};
  }

  Parsed<void> add_images(const Column& column, Bytes value) {
    const auto images = images_in(value, column.is_listed);
    if (!images) return std::unexpected(images.error());
    for (std::size_t i = 0; i < images->size(); ++i) {
      const Bytes image = (*images)[i];
      const std::string_view kind = decode::image_extension(image);
      const std::string number = name_ + "." + std::to_string(i) + ".";
      files_.add(number + std::string(kind.empty() ? "bin" : kind), "", {image.begin(), image.end()});
    }
    return {};
  }

  std::string name_;
  MemberFiles files_;
};

}  // namespace

Result<std::vector<File>> files_of(Bytes sample, const SampleSchema& schema, const std::vector<ColumnChoice>& fields) {
  const Columns& columns = schema.columns;
  std::vector<Bytes> values(columns.size());
  memory::ByteBuffer room;
  if (const auto split = split_sample(sample, schema, values, room); !split)
    return data_error("the sample is damaged: " + split.error(), "format");
  // fields come first, so that they get the short names
  std::vector<std::pair<std::size_t, const FieldDescription*>> order;
  for (const ColumnChoice& field : fields)
    if (std::ranges::find(order, field.column, &decltype(order)::value_type::first) == order.end())
      order.emplace_back(field.column, &field.description);
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (std::ranges::find(order, i, &decltype(order)::value_type::first) == order.end()) order.emplace_back(i, nullptr);
  FileWriter writer;
  for (const auto& [column, field] : order)
    if (const auto added = writer.add(columns[column], field, values[column]); !added)
      return data_error(
          "the column '" + columns[column].name + "' (" + columns[column].encoding + "): " + added.error(), "format");
  auto files = writer.take();
  if (files.empty()) return data_error("the sample has no column that can be written as a file", "format");
  return files;
}

}  // namespace feedline::format
