// SPDX-License-Identifier: Apache-2.0
#include "format/rows/rows_format.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/arrays/named_arrays.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/rows/row_columns.h"
#include "format/rows/text_cells.h"
#include "memory/number.h"
#include "storage/registry.h"
#include "storage/routed_storage.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string key_of(std::uint64_t row) {
  constexpr std::size_t kDigits = 8;  // so that keys of up to 100 million rows sort in row order
  const std::string number = std::to_string(row);
  return std::string(kDigits - std::min(kDigits, number.size()), '0') + number;
}

std::int64_t integer_in(const NamedArray& array, std::uint64_t row) {
  return memory::with_number(array.row.dtype, row_of(array, row).bytes, [](auto number) -> std::int64_t {
    if constexpr (std::is_integral_v<decltype(number)>) return static_cast<std::int64_t>(number);
    FEEDLINE_CHECK(!"an integer dtype, by field_of()");
  });
}

// Sets the elements of the row's classes to 1, and all others to 0.
void expand(const MultiHotColumn& column, std::uint64_t row, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  const Bytes codes = row_of(column.codes, row).bytes;
  constexpr float kSet = 1;
  for (std::size_t i = 0; i < codes.size() / sizeof(std::int32_t); ++i) {
    std::int32_t code = 0;
    std::memcpy(&code, codes.data() + i * sizeof code, sizeof code);
    FEEDLINE_CHECK(code >= 0 && static_cast<std::uint64_t>(code) < column.classes);
    std::memcpy(out.data() + static_cast<std::size_t>(code) * sizeof kSet, &kSet, sizeof kSet);
  }
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> RowsFormat::open(RowOptions options, const Wrap& wrap) {
  if (options.columns.empty()) return config_error("a dataset of rows needs at least one column");
  std::vector<FieldDescription> fields;
  std::set<std::string> names;
  for (const RowColumn& column : options.columns) {
    FEEDLINE_CHECK_OK(check_column(column));
    FEEDLINE_TRY(FieldDescription field, field_of(column));
    if (!names.insert(field.name).second) return config_error("two fields are called '" + field.name + "'");
    if (rows_of(column) != rows_of(options.columns.front()))
      return config_error("the field '" + field.name + "' has " + std::to_string(rows_of(column)) + " rows, but '" +
                          fields.front().name + "' has " + std::to_string(rows_of(options.columns.front())));
    fields.push_back(std::move(field));
  }
  if (rows_of(options.columns.front()) == 0) return config_error("there are no rows");
  if (const auto& row_names = options.row_names) {
    FEEDLINE_CHECK_OK(check(*row_names));
    if (row_names->rows != rows_of(options.columns.front()))
      return config_error("there are " + std::to_string(row_names->rows) + " names of rows, but " +
                          std::to_string(rows_of(options.columns.front())) + " rows");
  }
  std::shared_ptr<RowsFormat> format(new RowsFormat(std::move(options), std::move(fields)));
  FEEDLINE_TRY(const Schemes schemes, format->scan_rows());
  FEEDLINE_CHECK_OK(format->choose_storage(schemes, wrap));
  FEEDLINE_CHECK_OK(check_audio_library(*format));
  return format;
}

RowsFormat::RowsFormat(RowOptions options, std::vector<FieldDescription> fields)
    : options_(std::move(options)), fields_(std::move(fields)), size_(rows_of(options_.columns.front())) {
  for (const RowColumn& column : options_.columns) file_fields_ += std::holds_alternative<FileColumn>(column);
}

Result<void> RowsFormat::choose_storage(const Schemes& schemes, const Wrap& wrap) {
  std::shared_ptr<const storage::Storage> sole;
  if (schemes.are_mixed) {
    sole = std::make_shared<storage::RoutedStorage>();
  } else if (schemes.first.value_or("").empty()) {
    sole = storage::local_storage();
  } else {
    are_urls_ = true;
    FEEDLINE_TRY(const auto location, storage::open(schemes.path));
    sole = location.storage;
  }
  FEEDLINE_TRY(storage_, wrap(std::move(sole)));
  return {};
}

Result<void> RowsFormat::find_object(const FileColumn& column, std::uint64_t row, std::string& object,
                                     std::string& room) const {
  find_path(column, row, object, room);
  if (object.contains('\0')) return data_error("the path contains a zero byte", "format");
  if (!are_urls_) return {};
  FEEDLINE_TRY(auto location, storage::open(object));
  object = std::move(location.object);
  return {};
}

// Every path is read once, because reading a million strings takes most of the opening time.
Result<RowsFormat::Schemes> RowsFormat::scan_rows() {
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(size());
  for (const std::string& name : options_.classes) fingerprint.add(name);
  Schemes schemes;
  std::string text, room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fingerprint.add(fields_[i].name);
    fingerprint.add(static_cast<std::uint64_t>(fields_[i].kind));
    const RowColumn& column = options_.columns[i];
    for (std::uint64_t row = 0; row < size(); ++row) {
      if (const auto* files = std::get_if<FileColumn>(&column)) {
        text.clear();
        if (has_file(*files, row)) {
          find_path(*files, row, text, room);
          if (text.size() <= files->root.size() + 1 && is_path_empty(*files, row, room))  // the size is a quick check
            return config_error(row_text(row, i) + ": the path is empty; drop the row, or fill in the path");
          schemes.add(text);
        }
        fingerprint.add(text);
        for (const auto* const times : {&files->begins, &files->durations})
          if (!times->empty()) fingerprint.add(std::bit_cast<std::uint64_t>((*times)[row]));
        if (!files->channels.empty()) fingerprint.add(static_cast<std::uint64_t>(files->channels[row]));
      } else if (const auto* texts = std::get_if<TextColumn>(&column)) {
        fingerprint.add(text_of(*texts->cells, row, room));
      } else if (const auto* numbers = std::get_if<NumberColumn>(&column)) {
        if (fields_[i].kind == FieldKind::kInteger)
          fingerprint.add(static_cast<std::uint64_t>(integer_in(numbers->array, row)));
        else
          fingerprint.add(row_of(numbers->array, row).bytes);
      } else {
        fingerprint.add(row_of(std::get<MultiHotColumn>(column).codes, row).bytes);
      }
    }
  }
  fingerprint_ = fingerprint.value();
  return schemes;
}

void RowsFormat::Schemes::add(const std::string& added) {
  const std::string scheme = added.contains("://") ? storage::scheme_of(added) : std::string();
  if (!first) {
    first = scheme;
    path = added;
  }
  are_mixed = are_mixed || scheme != *first;
}

const FileColumn* RowsFormat::file_column(std::uint64_t row, std::size_t field) const {
  const auto* const files = std::get_if<FileColumn>(&options_.columns[field]);
  return files != nullptr && has_file(*files, row) ? files : nullptr;
}

std::string RowsFormat::row_text(std::uint64_t row, std::size_t field) const {
  std::string text = "row " + std::to_string(row), room;
  if (options_.row_names) text.append(" (index '").append(text_of(*options_.row_names, row, room)).append("')");
  return text + ", column '" + fields_[field].name + "'";
}

Where RowsFormat::where(std::uint64_t index) const {
  for (std::size_t i = 0; i < fields_.size(); ++i)
    if (file_column(index, i) != nullptr) return where_field(index, i);
  return where_field(index, 0);
}

Where RowsFormat::where_field(std::uint64_t index, std::size_t field) const {
  FEEDLINE_CHECK(index < size());
  Where where;
  where.dataset = options_.source;
  where.key = key_of(index);
  where.record = index;
  std::string room;
  if (options_.row_names) where.label = text_of(*options_.row_names, index, room);
  const FileColumn* const files = file_column(index, field);
  if (files == nullptr) return where;
  find_path(*files, index, where.shard, room);
  if (where.shard.contains("://"))  // a URL may contain a password or a signature
    if (auto location = storage::open(where.shard)) where.shard = std::move(location->object);
  return where;
}

std::unexpected<Error> RowsFormat::failed(std::uint64_t index, std::size_t field, Error error) const {
  error.what = row_text(index, field) + ": " + error.what;
  Where where = where_field(index, field);
  where.label.clear();  // already in the text
  return failed_at(std::move(where), std::move(error));
}

bool RowsFormat::find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                            std::string& room) const {
  const RowColumn& column = options_.columns[field];
  if (std::holds_alternative<FileColumn>(column)) return false;
  value = {};
  if (const auto* texts = std::get_if<TextColumn>(&column)) {
    value.bytes = bytes_of(text_of(*texts->cells, index, room));
  } else if (const auto* numbers = std::get_if<NumberColumn>(&column)) {
    if (fields_[field].kind == FieldKind::kInteger) {
      value.value = integer_in(numbers->array, index);
    } else {
      const StoredRow row = row_of(numbers->array, index);
      value.bytes = row.bytes;
      value.array = ArraySpec{numbers->array.row.dtype, row.shape};
    }
  } else {
    room.resize(fields_[field].array.bytes());
    expand(std::get<MultiHotColumn>(column), index, std::as_writable_bytes(std::span(room)));
    value.bytes = bytes_of(room);
    value.array = fields_[field].array;
  }
  return true;
}

}  // namespace feedline::format
