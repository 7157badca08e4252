// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/litdata/arrow_rows.h"

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "format/columnar/arrow/arrow_table.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
constexpr std::string_view kMagic{"LDARW01\0", 8};
constexpr std::uint64_t kEndBytes = kNumber + kMagic.size();

std::unexpected<Error> damaged(const std::string& how, std::uint64_t offset) {
  auto error = data_error("the chunk is damaged: " + how + "; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

struct Front {
  std::uint32_t samples = 0, first = 0, second = 0;  // offsets of the first two samples
};

Result<Front> front_of(const storage::Reader& chunk) {
  Front front;
  static_assert(sizeof front == 3 * kNumber);
  FEEDLINE_TRY(const std::size_t got, chunk.read_at(0, std::as_writable_bytes(std::span(&front, 1))));
  if (got < sizeof front) return damaged("the file has " + std::to_string(got) + " bytes, too few for one sample", got);
  return front;
}

// Returns whether the samples are Arrow rows. In all other chunks, the first two offsets differ, since stored values
// have at least one byte.
bool has_rows(const Front& front) { return front.samples > 0 && front.first == front.second; }

// Returns the position of the Arrow file in a chunk of the given size.
Result<ByteRange> rows_in(const storage::Reader& chunk, std::uint64_t bytes, std::uint64_t samples) {
  std::array<std::byte, kEndBytes> end;
  if (bytes < end.size())
    return damaged("the file has " + std::to_string(bytes) + " bytes, too few for the end marker", bytes);
  const std::uint64_t end_at = bytes - kEndBytes;
  FEEDLINE_TRY(const std::size_t got, chunk.read_at(end_at, end));
  if (got < end.size()) return storage_error("the chunk became shorter while it was read", 0);
  FEEDLINE_TRY(const Front front, front_of(chunk));
  if (!has_rows(front))
    return config_error(
        "the chunk has no Arrow rows, but the first chunk of the dataset does: write the dataset again with one "
        "version of LitData");
  if (front.samples != samples)
    return damaged(
        "the header has " + std::to_string(front.samples) + " samples, but the index has " + std::to_string(samples),
        0);
  if (std::memcmp(end.data() + kNumber, kMagic.data(), kMagic.size()) != 0)
    return damaged("the samples are Arrow rows, but the chunk does not end with \"LDARW01\"", end_at);
  std::uint32_t rows_bytes = 0;
  std::memcpy(&rows_bytes, end.data(), sizeof rows_bytes);
  const std::uint64_t table_bytes = (samples + 2) * kNumber;
  if (table_bytes > end_at || rows_bytes > end_at - table_bytes)
    return damaged("Arrow rows of " + std::to_string(rows_bytes) + " bytes do not fit into the chunk's " +
                       std::to_string(bytes) + " bytes",
                   end_at);
  return ByteRange{end_at - rows_bytes, rows_bytes};
}

}  // namespace

Result<bool> begins_as_arrow_rows(const storage::Reader& chunk) {
  FEEDLINE_TRY(const Front front, front_of(chunk));
  return has_rows(front);
}

TableKind arrow_rows_kind(std::map<std::string, std::uint64_t> samples) {
  auto cache = new_block_cache();
  const auto open = [cache, samples = std::move(samples)](
                        const ShardFile& file, const storage::Reader& reader) -> Result<std::unique_ptr<ColumnTable>> {
    const std::uint64_t wanted = samples.at(file.path);
    FEEDLINE_TRY(const ByteRange part, rows_in(reader, file.version.bytes, wanted));
    FEEDLINE_TRY(auto table, ArrowTable::open_part(file, part, reader, cache));
    if (table->rows() == wanted) return table;
    return damaged(
        "the chunk has " + std::to_string(table->rows()) + " Arrow rows for " + std::to_string(wanted) + " samples",
        part.offset);
  };
  return {"litdata", "LitData chunk", open, {}, cache};
}

}  // namespace feedline::format
