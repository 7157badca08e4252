// SPDX-License-Identifier: Apache-2.0
#include "format/rows/rows_format.h"

#include <algorithm>
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
#include "format/short_list.h"
#include "memory/npy_header.h"
#include "memory/number.h"
#include "storage/registry.h"
#include "storage/routed_storage.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kLabel = "label";  // the field that pack stores as a sample's class

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

// Sets the elements of the row's classes to 1, the others to 0.
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

std::string extension_in(std::string_view path) {
  path = path.substr(0, path.find('?'));
  const std::size_t dot = path.rfind('.');
  return dot == path.npos || path.find('/', dot) != path.npos ? "bin" : std::string(path.substr(dot + 1));
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> RowsFormat::open(RowOptions options, const Wrap& wrap) {
  if (options.columns.empty()) return config_error("a dataset of rows needs at least one column");
  std::vector<FieldDescription> fields;
  std::set<std::string> names;
  for (const RowColumn& column : options.columns) {
    FEEDLINE_TRY(FieldDescription field, field_of(column));
    if (!names.insert(field.name).second) return config_error("two fields are called '" + field.name + "'");
    if (rows_of(column) != rows_of(options.columns.front()))
      return config_error("the field '" + field.name + "' has " + std::to_string(rows_of(column)) + " rows, but '" +
                          fields.front().name + "' has " + std::to_string(rows_of(options.columns.front())));
    fields.push_back(std::move(field));
  }
  if (rows_of(options.columns.front()) == 0) return config_error("there are no rows");
  std::shared_ptr<RowsFormat> format(new RowsFormat(std::move(options), std::move(fields)));
  FEEDLINE_CHECK_OK(format->choose_storage(wrap));
  return format;
}

RowsFormat::RowsFormat(RowOptions options, std::vector<FieldDescription> fields)
    : options_(std::move(options)), fields_(std::move(fields)), size_(rows_of(options_.columns.front())) {
  for (const RowColumn& column : options_.columns) file_fields_ += std::holds_alternative<FileColumn>(column);
  fingerprint_ = compute_fingerprint();
}

Result<void> RowsFormat::choose_storage(const Wrap& wrap) {
  std::shared_ptr<const storage::Storage> sole;
  std::string path, room, scheme, first_scheme;
  bool is_first = true, are_mixed = false;
  for (std::uint64_t row = 0; row < size() && !are_mixed; ++row)
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const FileColumn* const files = file_column(row, i);
      if (files == nullptr) continue;
      find_path(*files, row, path, room);
      scheme = path.contains("://") ? storage::scheme_of(path) : std::string();
      if (std::exchange(is_first, false)) first_scheme = scheme;
      are_mixed = are_mixed || scheme != first_scheme;
    }
  if (are_mixed) {
    sole = std::make_shared<storage::RoutedStorage>();
  } else if (first_scheme.empty()) {
    sole = storage::local_storage();
  } else {
    are_urls_ = true;
    FEEDLINE_TRY(const auto location, storage::open(path));
    sole = location.storage;
  }
  FEEDLINE_TRY(storage_, wrap(std::move(sole)));
  return {};
}

Result<void> RowsFormat::find_object(const FileColumn& column, std::uint64_t row, std::string& object,
                                     std::string& room) const {
  find_path(column, row, object, room);
  if (object.contains('\0')) return data_error("a path with a zero byte", "format");
  if (!are_urls_) return {};
  FEEDLINE_TRY(auto location, storage::open(object));
  object = std::move(location.object);
  return {};
}

std::uint64_t RowsFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(size());
  for (const std::string& name : options_.classes) fingerprint.add(name);
  std::string text, room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fingerprint.add(fields_[i].name);
    fingerprint.add(static_cast<std::uint64_t>(fields_[i].kind));
    const RowColumn& column = options_.columns[i];
    for (std::uint64_t row = 0; row < size(); ++row) {
      if (const auto* files = std::get_if<FileColumn>(&column)) {
        text.clear();
        if (has_file(*files, row)) find_path(*files, row, text, room);
        fingerprint.add(text);
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
  return fingerprint.value();
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
  const FileColumn* const files = file_column(index, field);
  if (files == nullptr) return where;
  find_path(*files, index, where.shard, room);
  if (where.shard.contains("://"))  // a URL may contain a password or a signature
    if (auto location = storage::open(where.shard)) where.shard = std::move(location->object);
  return where;
}

std::unexpected<Error> RowsFormat::failed(std::uint64_t index, std::size_t field, Error error) const {
  Where place = where_field(index, field);
  error.what = row_text(index, field) + ": " + error.what;
  place.stage = std::move(error.where.stage);
  place.offset = error.where.offset;
  error.where = std::move(place);
  return std::unexpected(std::move(error));
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

// files: for each file that the row has, in the order of the fields.
Result<void> RowsFormat::take(std::uint64_t row, std::span<const Bytes> files, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
  // Each field has its own buffer after those of the files: a sample may outlive its dataset.
  const std::size_t own = std::max<std::size_t>(file_fields_, 1) - 1;
  record.more.resize(std::max(record.more.size(), own + fields_.size()));
  std::size_t next = 0;
  std::string room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    memory::Record::Field& field = record.fields[i];
    if (std::holds_alternative<FileColumn>(options_.columns[i])) {
      field.absent = file_column(row, i) == nullptr;
      if (!field.absent) field.bytes = files[next++];
    } else {
      find_value(row, i, field, room);
      FEEDLINE_TRY(const auto copy, record.more[own + i].make_room(field.bytes.size(), record.most_bytes));
      std::ranges::copy(field.bytes, copy.begin());
      field.bytes = copy;
    }
    record.bytes_read += field.bytes.size();
  }
  return {};
}

Result<void> RowsFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  ShortList<Bytes> list(file_fields_);
  record.more.resize(std::max(record.more.size(), file_fields_));
  std::uint64_t left = record.most_bytes;
  std::size_t used = 0;
  std::string room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const FileColumn* const files = file_column(index, i);
    if (files == nullptr) continue;
    memory::ByteBuffer& buffer = used == 0 ? record.storage : record.more[used - 1];
    auto found = find_object(*files, index, record.name, room);
    auto bytes = found ? storage_->read_all(record.name, buffer, left) : std::unexpected(std::move(found).error());
    if (bytes && bytes->empty() && !may_be_empty(fields_[i].kind)) bytes = data_error("an empty file", "format");
    if (!bytes) return failed(index, i, std::move(bytes).error());
    left -= bytes->size();
    list.all()[used++] = *bytes;
  }
  return take(index, list.all().first(used), record);
}

Result<void> RowsFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  std::string room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const FileColumn* const files = file_column(index, i);
    if (files == nullptr) continue;
    storage::Piece piece;
    if (!find_object(*files, index, piece.path, room)) return pieces.clear(), Result<void>();  // read() reports it
    pieces.push_back(std::move(piece));
  }
  return {};
}

Result<void> RowsFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  std::size_t next = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i)
    if (file_column(index, i) != nullptr && pieces[next++].empty() && !may_be_empty(fields_[i].kind))
      return failed(index, i, data_error("an empty file", "format").error());
  return take(index, pieces, record);
}

Result<SampleFiles> RowsFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  SampleFiles sample{key_of(index), std::nullopt, {}};
  const auto add = [&](const FieldDescription& field, std::string extension, Bytes bytes) {
    const auto is_taken = [&] {
      return std::ranges::find(sample.files, extension, &SampleFiles::File::extension) != sample.files.end();
    };
    if (field.kind != FieldKind::kImage || is_taken()) extension = field.name + "." + extension;
    while (is_taken()) extension.insert(0, "_");
    sample.files.push_back({std::move(extension), {bytes.begin(), bytes.end()}});
  };
  // Files first, so that the image has the first place in the sample.
  for (const bool are_files : {true, false})
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const memory::Record::Field& field = record.fields[i];
      if (field.absent || std::holds_alternative<FileColumn>(options_.columns[i]) != are_files) continue;
      if (are_files) {
        add(fields_[i], extension_in(where_field(index, i).shard), field.bytes);
      } else if (field.array) {
        const auto file = memory::npy_file(*field.array, field.bytes);
        add(fields_[i], "npy", file);
      } else if (fields_[i].kind == FieldKind::kText) {
        add(fields_[i], "txt", field.bytes);
      } else if (fields_[i].name == kLabel) {
        sample.label = field.value;
      } else {
        add(fields_[i], "cls", bytes_of(std::to_string(field.value)));
      }
    }
  return sample;
}

Result<SampleFileSizes> RowsFormat::file_sizes(std::uint64_t index) const {
  FEEDLINE_TRY(const SampleFiles sample, files(index));
  SampleFileSizes sizes{sample.key, sample.label, {}};
  for (const auto& file : sample.files) sizes.files.push_back({file.extension, file.bytes.size()});
  return sizes;
}

}  // namespace feedline::format
