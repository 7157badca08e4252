// SPDX-License-Identifier: Apache-2.0

// Any bytes as a part of an MDS or LitData dataset, selected by the first byte: an index, a shard with columns of every
// kind, a shard's table of offsets, a line of cells or JSON, or compressed data. No crash, no read out of bounds, no
// excessive memory. A shard's samples are in ascending order inside it, and their values are inside the samples.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "format/compression/compression.h"
#include "format/index/memory_reader.h"
#include "format/row_columns/column_files.h"
#include "format/row_columns/column_reader.h"
#include "format/row_columns/column_shard.h"
#include "format/row_columns/litdata/litdata_index.h"
#include "format/row_columns/mds/mds_encoding.h"
#include "format/row_columns/mds/mds_index.h"

using namespace feedline;

namespace {

using Bytes = std::span<const std::byte>;

// A spec ends at a colon.
std::string name_of_one(std::string encoding) {
  std::ranges::replace(encoding, ':', '_');
  return encoding;
}

// One column of each kind, with MDS's and LitData's names.
format::Columns every_column() {
  format::Columns columns;
  for (const char* encoding : {"bytes", "str", "json", "jpeg", "pil", "jpeg_array", "list[png]", "str_int", "str_float",
                               "str_decimal", "ndarray", "ndarray:uint16"})
    columns.push_back(*format::mds_column(name_of_one(encoding), encoding, {}));
  columns.push_back(*format::mds_column("fixed", "ndarray:float32:2,2", 16));
  columns.push_back(*format::mds_column("u64", "uint64", 8));
  for (const char* encoding : {"tensor", "numpy", "no_header_tensor:17", "bool"})
    columns.push_back(format::litdata_column(name_of_one(encoding), encoding));
  return columns;
}

void check_inside(Bytes value, Bytes sample) {
  if (value.empty()) return;
  FEEDLINE_CHECK(value.data() >= sample.data() && value.data() + value.size() <= sample.data() + sample.size());
}

void read_samples(std::string_view text) {
  static const format::SampleSchema kSchema{every_column()};
  static const format::Columns& kColumns = kSchema.columns;
  static const auto kFields =
      *format::choose_columns({"bytes", "pil", "str_int", "str_float", "str_decimal:array", "ndarray", "ndarray_uint16",
                               "fixed", "u64", "tensor", "numpy", "no_header_tensor_17", "bool"},
                              kColumns);
  std::uint32_t samples = 0;
  if (text.size() >= sizeof samples) text.copy(reinterpret_cast<char*>(&samples), sizeof samples);
  const format::MemoryReader reader(text);
  const auto table = format::read_sample_table(reader, {samples, text.size(), text.size()});
  if (!table) return;
  const format::ColumnReader columns(kSchema, kFields);
  memory::Record record;
  for (std::size_t i = 0; i < samples; ++i) {
    FEEDLINE_CHECK((*table)[i] <= (*table)[i + 1] && (*table)[i + 1] <= text.size());
    const Bytes sample = std::as_bytes(std::span(text.substr((*table)[i], (*table)[i + 1] - (*table)[i])));
    (void)format::files_of(sample, kSchema, kFields);
    if (!columns.read(sample, record)) continue;
    for (std::size_t field = 0; field < kFields.size(); ++field) {
      const auto kind = kColumns[kFields[field].column].kind;
      if (kind != format::ColumnKind::kReal) check_inside(record.fields[field].bytes, sample);
      if (const auto& array = record.fields[field].array)
        FEEDLINE_CHECK(array->bytes() == record.fields[field].bytes.size());
    }
  }
}

// The table of a shard with its first sample at byte 8.
void read_table(std::string_view text) {
  constexpr std::uint64_t kBegin = 8, kEnd = 1 << 20;
  std::uint32_t samples = 0;
  if (text.size() >= sizeof samples) text.copy(reinterpret_cast<char*>(&samples), sizeof samples);
  const auto table = format::read_sample_table(format::MemoryReader(text), {samples, text.size(), kEnd, kBegin});
  if (!table) return;
  FEEDLINE_CHECK(table->size() == samples + std::size_t{1} && table->front() == kBegin && table->back() == kEnd);
  FEEDLINE_CHECK(std::ranges::is_sorted(*table));
}

void read_line(std::string_view text, format::SampleLayout layout) {
  const format::SampleSchema schema{{format::line_column("f", "float"), format::line_column("n", "int"),
                                     format::line_column("s", "str"), format::line_column("u", "unknown")},
                                    layout,
                                    "::",
                                    "\r\n"};
  static const auto kFields = *format::choose_columns({"f", "n", "s", "raw=s:bytes", "digits=n:text"}, schema.columns);
  const Bytes line = std::as_bytes(std::span(text));
  const auto files = format::files_of(line, schema, kFields);
  memory::Record record;
  if (!format::ColumnReader(schema, kFields).read(line, record)) return;
  FEEDLINE_CHECK(files.has_value());
  if (layout == format::SampleLayout::kSeparated) check_inside(record.fields[2].bytes, line);
  FEEDLINE_CHECK(record.fields[2].bytes.size() <= line.size());
  FEEDLINE_CHECK(record.fields[0].array && record.fields[0].array->bytes() == record.fields[0].bytes.size());
}

void decompress_any(std::uint8_t kind, Bytes data) {
  constexpr std::uint64_t kMost = 1 << 16;
  const auto compression = static_cast<format::Compression>(kind % 8);
  memory::ByteBuffer room;
  const auto made = format::decompress(compression, data, room, kMost);
  FEEDLINE_CHECK(room.capacity() <= kMost);
  if (!made) return;
  std::vector<std::byte> exactly(made->size());
  if (format::decompress_exactly(compression, data, exactly)) FEEDLINE_CHECK(std::ranges::equal(exactly, *made));
  std::vector<std::byte> streamed;
  auto stream = format::StreamDecompression::start(compression, kMost);
  const auto take = [&](Bytes bytes) -> Result<void> {
    streamed.insert(streamed.end(), bytes.begin(), bytes.end());
    return {};
  };
  for (std::size_t i = 0; i < data.size(); i += 7)
    FEEDLINE_CHECK(stream->feed(data.subspan(i, std::min<std::size_t>(7, data.size() - i)), take).has_value());
  FEEDLINE_CHECK(stream->finish(take).has_value());
  FEEDLINE_CHECK(std::ranges::equal(streamed, *made));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, bytes - 1);
  switch (data[0]) {
    case 'm':
      (void)format::parse_mds_index(text);
      break;
    case 'l':
      (void)format::parse_litdata_index(text);
      (void)format::leaf_names(text);
      break;
    case 's':
      read_samples(text);
      break;
    case 't':
      read_table(text);
      break;
    case 'j':
      read_line(text, format::SampleLayout::kJson);
      break;
    case 'x':
      read_line(text, format::SampleLayout::kSeparated);
      break;
    default:
      decompress_any(data[0], std::as_bytes(std::span(text)));
  }
  return 0;
}
