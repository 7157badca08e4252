// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/table_format.h"
#include "text/utf8.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <span>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/short_list.h"
#include "memory/npy_header.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kNowhere = ~std::size_t{0};

// The number of rows that a thread gathers at a time, so that the cost of a call is small compared with its copies.
constexpr std::uint64_t kGatheredRows = 512;

const std::string& header_of_reals() {
  static const std::string kHeader = memory::npy_header({DType::kFloat64, {}});
  return kHeader;
}

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string extension_in(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == path.npos || path.find('/', dot) != path.npos ? "bin" : std::string(path.substr(dot + 1));
}

// Returns the file that contains a row. `ends` has the cumulative number of rows per file.
const TableLocation& place_of_row(const TableLocations& locations, const std::vector<std::uint64_t>& ends,
                                  std::uint64_t row) {
  const auto end = std::ranges::upper_bound(ends, row);
  FEEDLINE_CHECK(end != ends.end());
  return locations.files[static_cast<std::size_t>(end - ends.begin())];
}

// Adds the file and the key of the row to an error from choose_columns().
Error located(Error error, const TableLocations& locations, const std::vector<std::uint64_t>& ends) {
  if (error.code != ErrorCode::kData || !error.where.record) return error;
  error.where.shard = place_of_row(locations, ends, *error.where.record).path;
  error.where.key = TableFormat::key_of(*error.where.record);
  return error;
}

// Checks that class names are UTF-8.
Result<void> check_classes(const ColumnField& field, const TableLocation& location) {
  for (const std::string& name : field.classes) {
    auto checked = text::check_utf8(std::as_bytes(std::span(name)));
    if (checked) continue;
    Error error = std::move(checked).error();
    error.what = "field '" + field.description.name + "': the class '" + name + "' is " + error.what +
                 "; save the table as UTF-8";
    error.where = {};
    error.where.shard = location.path;
    error.where.stage = "format";
    return std::unexpected(std::move(error));
  }
  return {};
}

}  // namespace

std::string TableFormat::key_of(std::uint64_t row) {
  constexpr std::size_t kDigits = 8;
  const std::string number = std::to_string(row);
  return std::string(kDigits - std::min(kDigits, number.size()), '0') + number;
}

Result<std::shared_ptr<const RecordFormat>> TableFormat::open(const std::string& source,
                                                              const TableLocations& locations,
                                                              const OpenOptions& options) {
  FEEDLINE_TRY(ReadTable read, read_tables(options.storage, locations));
  auto chosen = choose_columns(options.fields, read.table, locations.is_metadata);
  if (!chosen) return std::unexpected(located(std::move(chosen).error(), locations, read.ends));
  std::vector<ColumnField>& fields = *chosen;
  for (const ColumnField& field : fields) FEEDLINE_CHECK_OK(check_classes(field, locations.files.front()));
  std::shared_ptr<TableFormat> format(new TableFormat(source, locations, options, std::move(read), std::move(fields)));
  if (format->size() > 0 && format->left_out_ < format->table_.rows()) return format;
  return config_error("missing=\"skip\" omits all samples: each lacks one of the fields");
}

TableFormat::TableFormat(std::string source, TableLocations locations, OpenOptions options, ReadTable read,
                         std::vector<ColumnField> fields)
    : OpenedFormat(std::move(source), std::move(options)),
      locations_(std::move(locations)),
      table_(std::move(read.table)),
      file_ends_(std::move(read.ends)),
      choices_(std::move(fields)) {
  if (options_.missing == Missing::kSkip) leave_out();
  for (ColumnField& field : choices_) {
    const auto is_absent = [&](std::uint64_t sample) { return field.absent[row_of(sample)]; };
    field.lacks_some = std::ranges::any_of(std::views::iota(std::uint64_t{0}, size()), is_absent);
    field.description.may_be_absent = options_.missing == Missing::kNone && field.lacks_some;
    file_fields_ += field.use == ColumnUse::kFile;
    if (classes_.empty()) classes_ = field.classes;
    fields_.push_back(field.description);
  }
  fingerprint_ = compute_fingerprint();
  const bool are_numbers = std::ranges::all_of(choices_, [](const ColumnField& field) {
    return field.use != ColumnUse::kFile && field.use != ColumnUse::kText && !field.description.may_be_absent;
  });
  if (are_numbers) grain_ = kGatheredRows;
}

const TableLocation& TableFormat::find_sample(std::uint64_t row) const {
  return place_of_row(locations_, file_ends_, row);
}

void TableFormat::leave_out() {
  for (std::uint64_t row = 0; row < table_.rows(); ++row) {
    bool is_whole = true;
    for (std::size_t field = 0; field < choices_.size(); ++field) is_whole = is_whole && has(row, field);
    if (is_whole) rows_.push_back(row);
  }
  left_out_ = table_.rows() - rows_.size();
  if (left_out_ == 0) rows_.clear();
}

std::string TableFormat::summary() const {
  if (left_out_ == 0) return {};
  return std::to_string(left_out_) + " samples were omitted because they lack a field";
}

std::uint64_t TableFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(size());
  if (options_.missing != Missing::kError)
    fingerprint.add(options_.missing == Missing::kSkip ? std::string_view("skip") : std::string_view("none"));
  for (const ColumnField& field : choices_) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.description.kind));
    const TableColumn& column = table_.columns[field.column];
    const auto text = column.text.values();
    fingerprint.add(std::string_view(text.data(), text.size()));
    fingerprint.add(column.ends.values());
  }
  for (const std::uint64_t row : rows_) fingerprint.add(row);
  return fingerprint.value();
}

Where TableFormat::where(std::uint64_t index) const {
  const auto file = std::ranges::find(choices_, ColumnUse::kFile, &ColumnField::use);
  return where_field(index,
                     static_cast<std::size_t>((file == choices_.end() ? choices_.begin() : file) - choices_.begin()));
}

// Returns the location of a field: its file, or the table.
Where TableFormat::where_field(std::uint64_t index, std::size_t field) const {
  FEEDLINE_CHECK(index < size());
  const std::uint64_t row = row_of(index);
  Where where;
  where.dataset = source_;
  where.shard = find_sample(row).path;
  if (choices_[field].use == ColumnUse::kFile && has(row, field))
    if (auto file = file_of(*options_.storage, find_sample(row), cell(row, field))) where.shard = std::move(*file);
  where.key = key_of(row);
  where.record = index;
  return where;
}

std::unexpected<Error> TableFormat::failed(std::uint64_t index, std::size_t field, Error error) const {
  const std::string& path = find_sample(row_of(index)).path;
  Where location = where_field(index, field == kNowhere ? 0 : field);
  if (field == kNowhere) location.shard = path;
  error.what = "line " + std::to_string(table_.lines[row_of(index)]) + " of '" + path + "'" +
               (field == kNowhere ? "" : ", field '" + choices_[field].description.name + "'") + ": " + error.what;
  return failed_at(std::move(location), std::move(error));
}

Result<void> TableFormat::check_row(std::uint64_t row) const {
  for (std::size_t field = 0; field < choices_.size(); ++field)
    if (!has(row, field) && !choices_[field].description.may_be_absent)
      return data_error("nothing in the column '" + table_.columns[choices_[field].column].name + "'", "format");
  return {};
}

// `files` has the contents of the sample's files, in the order of the fields.
Result<void> TableFormat::take(std::uint64_t row, std::span<const Bytes> files, memory::Record& record) const {
  record.fields.assign(choices_.size(), {});
  record.bytes_read = 0;
  std::size_t next = 0, room_bytes = 0;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    record.fields[i].absent = !has(row, i);
    if (record.fields[i].absent) continue;
    switch (choices_[i].use) {
      case ColumnUse::kFile:
        record.fields[i].bytes = files[next++];
        if (record.fields[i].bytes.data() == nullptr &&
            leaves_unread(record, choices_[i].description.kind, *options_.storage)) {
          record.fields[i].storage = options_.storage.get();
          FEEDLINE_TRY(record.fields[i].object, file_of(*options_.storage, find_sample(row), cell(row, i)));
        }
        record.bytes_read += record.fields[i].bytes.size();
        break;
      case ColumnUse::kInteger:
      case ColumnUse::kClass:
        record.fields[i].value = choices_[i].numbers[row];
        break;
      case ColumnUse::kReal:
        room_bytes += header_of_reals().size() + sizeof(double);
        break;
      case ColumnUse::kText:
        room_bytes += cell(row, i).size();
        break;
    }
  }
  // after the buffers of the files, because a sample may outlive its format
  const std::size_t own = std::max<std::size_t>(file_fields_, 1) - 1;
  record.more.resize(std::max(record.more.size(), own + 1));
  FEEDLINE_TRY(std::span<std::byte> room, record.more[own].make_room(room_bytes, record.most_bytes));
  const auto put = [&room](Bytes bytes) {
    if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
    const Bytes there = room.first(bytes.size());
    room = room.subspan(bytes.size());
    return there;
  };
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (record.fields[i].absent) continue;
    if (choices_[i].use == ColumnUse::kText) record.fields[i].bytes = put(bytes_of(cell(row, i)));
    if (choices_[i].use != ColumnUse::kReal) continue;
    const Bytes header = put(bytes_of(header_of_reals()));
    put(std::as_bytes(std::span(&choices_[i].reals[row], 1)));
    record.fields[i].bytes = {header.data(), header.size() + sizeof(double)};
  }
  record.bytes_read += room_bytes;
  return {};
}

Result<void> TableFormat::read(std::uint64_t index, memory::Record& record) const {
  const std::uint64_t row = row_of(index);
  record.pin.reset();
  if (auto whole = check_row(row); !whole) return failed(index, kNowhere, std::move(whole).error());
  ShortList<Bytes> list(file_fields_);
  record.more.resize(std::max(record.more.size(), file_fields_));
  std::uint64_t left = record.most_bytes;
  std::size_t used = 0;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].use != ColumnUse::kFile || !has(row, i)) continue;
    memory::ByteBuffer& room = used == 0 ? record.storage : record.more[used - 1];
    if (leaves_unread(record, choices_[i].description.kind, *options_.storage)) {
      list.all()[used++] = {};
      continue;
    }
    const auto path = file_of(*options_.storage, find_sample(row), cell(row, i));
    auto bytes = path ? options_.storage->read_all(*path, room, left) : std::unexpected(path.error());
    if (bytes && bytes->empty() && !may_be_empty(choices_[i].description.kind))
      bytes = data_error("an empty file", "format");
    if (!bytes) return failed(index, i, std::move(bytes).error());
    left -= bytes->size();
    list.all()[used++] = *bytes;
  }
  if (auto taken = take(row, list.all().first(used), record); !taken)
    return failed(index, kNowhere, std::move(taken).error());
  return {};
}

Result<void> TableFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const std::uint64_t row = row_of(index);
  if (!check_row(row)) return {};  // read() reports the error
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].use != ColumnUse::kFile || !has(row, i)) continue;
    auto path = file_of(*options_.storage, find_sample(row), cell(row, i));
    if (!path) return pieces.clear(), Result<void>();
    storage::Piece piece;
    piece.path = std::move(*path);
    pieces.push_back(std::move(piece));
  }
  return {};
}

Result<void> TableFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  const std::uint64_t row = row_of(index);
  record.pin.reset();
  std::size_t next = 0;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].use != ColumnUse::kFile || !has(row, i)) continue;
    if (pieces[next++].empty() && !may_be_empty(choices_[i].description.kind))
      return failed(index, i, data_error("an empty file", "format").error());
  }
  if (auto taken = take(row, pieces, record); !taken) return failed(index, kNowhere, std::move(taken).error());
  return {};
}

bool TableFormat::find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                             std::string& /*room*/) const {
  const ColumnField& from = choices_[field];
  const std::uint64_t row = row_of(index);
  if (from.use == ColumnUse::kFile || !has(row, field)) return false;
  value = {};
  if (from.use == ColumnUse::kInteger || from.use == ColumnUse::kClass) {
    value.value = from.numbers[row];
  } else if (from.use == ColumnUse::kReal) {
    value.bytes = std::as_bytes(std::span(&from.reals[row], 1));
    value.array = ArraySpec{DType::kFloat64, {}};
  } else {
    value.bytes = bytes_of(cell(row, field));
  }
  return true;
}

// Copies the fields one after the other: the cells of a column are next to each other in memory.
Result<std::uint64_t> TableFormat::gather(std::span<const SampleRow> samples,
                                          std::span<const ArrayView> first_rows) const {
  static_assert(sizeof(double) == sizeof(std::int64_t));
  constexpr std::size_t kWidth = sizeof(double);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const ColumnField& from = choices_[i];
    const bool is_real = from.use == ColumnUse::kReal;
    FEEDLINE_CHECK((first_rows[i].spec == ArraySpec{is_real ? DType::kFloat64 : DType::kInt64, {}}));
    const auto numbers = is_real ? std::as_bytes(std::span(from.reals)) : std::as_bytes(std::span(from.numbers));
    for (const SampleRow& one : samples) {
      const std::uint64_t row = row_of(one.sample);
      if (from.lacks_some && from.absent[row]) return data_error("a row has no value", "format");
      std::memcpy(first_rows[i].data + one.row * kWidth, numbers.data() + row * kWidth, kWidth);
    }
  }
  return samples.size() * choices_.size() * kWidth;
}

Result<SampleFiles> TableFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  const std::uint64_t row = row_of(index);
  SampleFiles sample{key_of(row), std::nullopt, {}};
  const auto add = [&](const ColumnField& field, std::string extension, Bytes bytes) {
    const FieldKind kind = field.description.kind;
    const auto is_taken = [&] {
      return std::ranges::find(sample.files, extension, &SampleFiles::File::extension) != sample.files.end();
    };
    const bool is_usual = kind == FieldKind::kImage || kind == FieldKind::kInteger;  // the usual fields of a tar
    if (!is_usual || is_taken()) extension = field.description.name + "." + extension;
    while (is_taken()) extension.insert(0, "_");
    sample.files.push_back({std::move(extension), {bytes.begin(), bytes.end()}});
  };
  // Files come first, so that the image is the first file of the sample.
  for (const bool is_of_file : {true, false})
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const ColumnField& field = choices_[i];
      if (record.fields[i].absent || (field.use == ColumnUse::kFile) != is_of_file) continue;
      const std::string number = std::to_string(record.fields[i].value);
      if (field.use == ColumnUse::kFile)
        add(field, extension_in(cell(row, i)), record.fields[i].bytes);
      else if (field.use == ColumnUse::kInteger || field.use == ColumnUse::kClass)
        add(field, "cls", bytes_of(number));
      else if (field.use == ColumnUse::kReal)
        add(field, "npy", record.fields[i].bytes);
      else
        add(field,
            field.description.kind == FieldKind::kText    ? "txt"
            : field.description.kind == FieldKind::kBytes ? "bin"
                                                          : "json",
            record.fields[i].bytes);
    }
  return sample;
}

}  // namespace feedline::format
