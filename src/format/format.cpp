// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "decode/audio/audio_reader.h"
#include "format/sources/sample_name.h"

namespace feedline::format {

Result<SampleFiles> RecordFormat::files(std::uint64_t /*index*/) const {
  return config_error("only folders, tars, TFRecord files, LMDB databases and tables have files that can be copied");
}

Result<SampleFileSizes> RecordFormat::file_sizes(std::uint64_t index) const {
  FEEDLINE_TRY(const SampleFiles sample, files(index));
  SampleFileSizes sizes{sample.key, sample.label, {}};
  for (const SampleFiles::File& file : sample.files) sizes.files.push_back({file.extension, file.bytes.size()});
  return sizes;
}

Result<std::uint64_t> RecordFormat::gather(std::span<const SampleRow> /*samples*/,
                                           std::span<const ArrayView> /*first_rows*/) const {
  FEEDLINE_CHECK(!"gather() of a format without columns");
}

Result<void> RecordFormat::find_pieces(std::uint64_t /*index*/, std::vector<storage::Piece>& /*pieces*/) const {
  return {};
}

std::vector<std::shared_ptr<const storage::Storage>> RecordFormat::storages() const {
  auto one = storage();
  if (!one) return {};
  return {std::move(one)};
}

// Formats that do not support pieces only read whole samples.
Result<void> RecordFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> /*pieces*/,
                                  memory::Record& record) const {
  return read(index, record);
}

std::uint64_t RowFormat::length(std::uint64_t /*index*/, std::size_t field) const { return longest(field); }

std::uint64_t RowFormat::longest(std::size_t field) const {
  const Shape& shape = fields()[field].array.shape;
  return shape.dims() == 0 ? 1 : static_cast<std::uint64_t>(shape[0]);
}

void RowFormat::lengths(std::span<const std::uint64_t> samples, std::size_t field,
                        std::span<std::uint64_t> lengths) const {
  FEEDLINE_CHECK(samples.size() == lengths.size());
  for (std::size_t i = 0; i < samples.size(); ++i) lengths[i] = length(samples[i], field);
}

Result<std::uint64_t> RowFormat::read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                               std::span<std::int64_t> out) const {
  thread_local std::vector<memory::ByteBuffer> memory;  // one per field
  memory.resize(std::max(memory.size(), fields().size()));
  std::vector<ArrayView> rows;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    ArraySpec spec = fields()[i].array;
    if (spec.is_ragged()) spec.shape = spec.shape.with_first(static_cast<std::int64_t>(length(index, i)));
    rows.push_back({memory[i].resize(std::max<std::size_t>(1, spec.bytes())).data(), spec});
  }
  FEEDLINE_TRY(const std::uint64_t read, fill({&index, 1}, rows));
  const ArrayView& row = rows[field];
  FEEDLINE_CHECK(begin + out.size() <= static_cast<std::uint64_t>(row.spec.shape[0]));
  FEEDLINE_TRY(const ToInt64 convert, to_int64_of(row.spec.dtype));
  convert(row.data + begin * size_of(row.spec.dtype), out.size(), out.data());
  return read;
}

namespace {

template <typename T>
void convert_to_int64(const std::byte* integers, std::uint64_t count, std::int64_t* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T integer;
    std::memcpy(&integer, integers + i * sizeof(T), sizeof(T));
    out[i] = static_cast<std::int64_t>(integer);
  }
}

}  // namespace

Result<ToInt64> to_int64_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      return &convert_to_int64<std::uint8_t>;
    case DType::kInt8:
      return &convert_to_int64<std::int8_t>;
    case DType::kUint16:
      return &convert_to_int64<std::uint16_t>;
    case DType::kInt16:
      return &convert_to_int64<std::int16_t>;
    case DType::kUint32:
      return &convert_to_int64<std::uint32_t>;
    case DType::kInt32:
      return &convert_to_int64<std::int32_t>;
    case DType::kInt64:
      return &convert_to_int64<std::int64_t>;
    default:
      return config_error("tokens must be integers of at most 64 bits, but the dtype is " +
                          std::string(name_of(dtype)));
  }
}

std::string names_of(const std::vector<UnopenedColumn>& columns) {
  constexpr std::size_t kShown = 20;
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == kShown) return text + " and " + std::to_string(columns.size() - kShown) + " more";
    const UnopenedColumn& column = columns[i];
    const bool is_both = !column.holds.empty() && !column.reason.empty();
    text.append(text.empty() ? "" : ", ").append(column.name);
    text.append(" (").append(column.holds).append(is_both ? ": " : "").append(column.reason).append(")");
  }
  return text;
}

bool leaves_unread(const memory::Record& record, FieldKind kind, const storage::Storage& storage) {
  if (kind == FieldKind::kVideo) return record.defers_videos;
  return kind == FieldKind::kAudio && record.defers_audio && !storage.is_remote();
}

std::unexpected<Error> failed_at(Where location, Error error) {
  location.stage = std::move(error.where.stage);
  if (error.where.offset) location.offset = error.where.offset;
  error.where = std::move(location);
  return std::unexpected(std::move(error));
}

std::shared_ptr<const RecordFormat> records_of(std::shared_ptr<const Format> format) {
  return std::dynamic_pointer_cast<const RecordFormat>(std::move(format));
}

std::shared_ptr<const RowFormat> rows_of(std::shared_ptr<const Format> format) {
  return std::dynamic_pointer_cast<const RowFormat>(std::move(format));
}

Result<void> check_audio_library(const Format& format) {
  for (std::size_t i = 0; i < format.fields().size(); ++i) {
    if (format.fields()[i].kind != FieldKind::kAudio || format.size() == 0) continue;
    const std::string file = format.where_field(0, i).shard;
    FEEDLINE_CHECK_OK(decode::check_audio_decoder(to_lower(file.substr(file.rfind('.') + 1))));
  }
  return {};
}

bool is_ragged(const Format& format) {
  if (dynamic_cast<const RowFormat*>(&format) == nullptr) return false;
  return std::ranges::any_of(format.fields(), [](const auto& field) { return field.array.is_ragged(); });
}

}  // namespace feedline::format
