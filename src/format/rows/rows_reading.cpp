// SPDX-License-Identifier: Apache-2.0
// Reads the samples of a RowsFormat.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/field_kind.h"
#include "format/rows/rows_format.h"
#include "format/short_list.h"
#include "memory/npy_header.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kLabel = "label";  // the field that pack stores as a sample's class

std::string extension_in(std::string_view path) {
  path = path.substr(0, path.find('?'));
  const std::size_t dot = path.rfind('.');
  return dot == path.npos || path.find('/', dot) != path.npos ? "bin" : std::string(path.substr(dot + 1));
}

}  // namespace

// files: the contents of the files that the row has, in the order of the fields.
Result<void> RowsFormat::take(std::uint64_t row, std::span<const Bytes> files, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
  // Each field has its own buffer after the files' buffers, because a sample may outlive its dataset.
  const std::size_t own = std::max<std::size_t>(file_fields_, 1) - 1;
  record.more.resize(std::max(record.more.size(), own + fields_.size()));
  std::size_t next = 0;
  std::string room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    memory::Record::Field& field = record.fields[i];
    if (std::holds_alternative<FileColumn>(options_.columns[i])) {
      field.absent = file_column(row, i) == nullptr;
      if (field.absent) continue;
      field.bytes = files[next++];
      if (fields_[i].kind == FieldKind::kAudio) take_range(row, i, field);
      if (field.bytes.data() == nullptr && leaves_unread(record, fields_[i].kind, *storage_)) {
        field.storage = storage_.get();
        FEEDLINE_CHECK_OK(find_object(std::get<FileColumn>(options_.columns[i]), row, field.object, room));
      }
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

void RowsFormat::take_range(std::uint64_t row, std::size_t field, memory::Record::Field& value) const {
  const FileColumn& files = std::get<FileColumn>(options_.columns[field]);
  if (!files.begins.empty()) value.range.begin = files.begins[row];
  if (!files.durations.empty()) value.range.duration = files.durations[row];
  if (!files.channels.empty()) value.channel = files.channels[row];
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
    if (leaves_unread(record, fields_[i].kind, *storage_)) {
      list.all()[used++] = {};
      continue;
    }
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
    if (!find_object(*files, index, piece.path, room)) return pieces.clear(), Result<void>();  // read() fails
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
  SampleFiles sample{where(index).key, std::nullopt, {}};
  const auto add = [&](const FieldDescription& field, std::string extension, Bytes bytes) {
    const auto is_taken = [&] {
      return std::ranges::find(sample.files, extension, &SampleFiles::File::extension) != sample.files.end();
    };
    if (field.kind != FieldKind::kImage || is_taken()) extension = field.name + "." + extension;
    while (is_taken()) extension.insert(0, "_");
    sample.files.push_back({std::move(extension), {bytes.begin(), bytes.end()}});
  };
  // Files come first, so that the image is the first file in the sample.
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
        const std::string number = std::to_string(field.value);
        add(fields_[i], "cls", std::as_bytes(std::span(number)));
      }
    }
  return sample;
}

}  // namespace feedline::format
