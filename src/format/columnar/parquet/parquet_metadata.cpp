// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/parquet_metadata.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "format/columnar/parquet/compact_reader.h"

namespace feedline::format {
namespace {

constexpr std::string_view kMagic = "PAR1", kEncrypted = "PARE";
constexpr std::uint64_t kEndBytes = 8;

std::unexpected<Error> damaged(std::uint64_t offset, const std::string& how) {
  auto error = data_error(how + ": the file is damaged or cut; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

// The field ids of all structs are defined in parquet.thrift.
class MetadataReader {
 public:
  explicit MetadataReader(std::span<const std::byte> bytes) : in_(bytes) {}

  std::optional<ParquetMetadata> read() {
    ParquetMetadata made;
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 2 && type == CompactType::kList)
        return in_.items([&](CompactType) { return made.schema.push_back(node()), true; }), true;
      if (id == 3 && is_number(type)) return made.rows = in_.integer(), true;
      if (id == 4 && type == CompactType::kList)
        return in_.items([&](CompactType) { return made.groups.push_back(group()), true; }), true;
      if (id == 5 && type == CompactType::kList)
        return in_.items([&](CompactType) { return key_value(made), true; }), true;
      return false;
    });
    if (in_.is_damaged()) return {};
    return made;
  }

 private:
  static bool is_number(CompactType type) {
    return type == CompactType::kInt16 || type == CompactType::kInt32 || type == CompactType::kInt64;
  }

  ParquetNode node() {
    ParquetNode made;
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 4 && type == CompactType::kBinary) return made.name = in_.text(), true;
      if (id == 10 && type == CompactType::kStruct) return logical(made), true;
      if (!is_number(type) || id > 6 || id == 4) return false;
      const std::int64_t value = in_.integer();
      if (id == 1) made.type = static_cast<ParquetType>(std::clamp<std::int64_t>(value, 0, 255));
      if (id == 2) made.type_bytes = static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, 0, 1 << 30));
      if (id == 3) made.repetition = static_cast<Repetition>(std::clamp<std::int64_t>(value, 0, 2));
      if (id == 5) made.children = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
      if (id == 6) made.converted = value;
      return true;
    });
    return made;
  }

  void logical(ParquetNode& made) {
    constexpr std::int64_t kTime = 7, kTimestamp = 8, kInteger = 10;
    in_.fields([&](std::int64_t id, CompactType type) {
      made.logical = id;
      if ((id == kTime || id == kTimestamp) && type == CompactType::kStruct) return time(made), true;
      if (id != kInteger || type != CompactType::kStruct) return false;
      in_.fields([&](std::int64_t inner, CompactType kind) {
        if (inner == 1 && kind == CompactType::kByte) return made.integer_bits = byte(), true;
        if (inner == 2) made.is_signed = kind == CompactType::kTrue;
        return false;
      });
      return true;
    });
  }

  void time(ParquetNode& made) {
    constexpr std::string_view kUnits[] = {"ms", "us", "ns"};
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 1) made.is_utc = type == CompactType::kTrue;
      if (id != 2 || type != CompactType::kStruct) return false;
      in_.fields([&](std::int64_t unit, CompactType) {
        if (unit >= 1 && unit <= 3) made.unit = kUnits[unit - 1];
        return false;
      });
      return true;
    });
  }

  std::int64_t byte() {
    const auto rest = in_.rest();
    const std::int64_t value = rest.empty() ? 0 : std::to_integer<std::int64_t>(rest.front());
    (void)in_.integer();  // a one-byte varint, because the value is below 64
    return value;
  }

  ParquetRowGroup group() {
    ParquetRowGroup made;
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 1 && type == CompactType::kList)
        return in_.items([&](CompactType) { return made.columns.push_back(chunk()), true; }), true;
      if (id == 3 && is_number(type)) return made.rows = in_.integer(), true;
      return false;
    });
    return made;
  }

  ParquetColumnChunk chunk() {
    ParquetColumnChunk made;
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 1 && type == CompactType::kBinary) return made.is_elsewhere = !in_.text().empty(), true;
      if (id == 3 && type == CompactType::kStruct) return column(made), true;
      if (id == 4 && is_number(type)) return made.index_offset = in_.integer(), true;
      if (id == 5 && is_number(type)) return made.index_bytes = in_.integer(), true;
      if (id == 8 || id == 9) made.is_encrypted = true;
      return false;
    });
    return made;
  }

  void column(ParquetColumnChunk& made) {
    in_.fields([&](std::int64_t id, CompactType type) {
      if (id == 12 && type == CompactType::kStruct) return statistics(made), true;
      if (!is_number(type)) return false;
      std::int64_t* const taken = id == 1    ? &made.type
                                  : id == 4  ? &made.codec
                                  : id == 5  ? &made.values
                                  : id == 6  ? &made.plain_bytes
                                  : id == 7  ? &made.packed_bytes
                                  : id == 9  ? &made.data_offset
                                  : id == 11 ? &made.dictionary_offset
                                             : nullptr;
      if (taken == nullptr) return false;
      return *taken = in_.integer(), true;
    });
  }

  void statistics(ParquetColumnChunk& made) {
    in_.fields([&](std::int64_t id, CompactType type) {
      return id == 3 && is_number(type) && (made.nulls = in_.integer(), true);
    });
  }

  void key_value(ParquetMetadata& made) {
    std::string_view key, value;
    in_.fields([&](std::int64_t id, CompactType type) {
      if (type != CompactType::kBinary || id > 2) return false;
      return (id == 1 ? key : value) = in_.text(), true;
    });
    if (key == "huggingface") made.features = value;
    if (key == "ARROW:schema") made.arrow_schema = value;
  }

  CompactReader in_;
};

}  // namespace

std::optional<ParquetMetadata> parse_parquet_metadata(std::span<const std::byte> bytes) {
  return MetadataReader(bytes).read();
}

Result<ParquetMetadata> read_parquet_metadata(const storage::Reader& reader, std::uint64_t bytes) {
  if (bytes < kMagic.size() + kEndBytes) return damaged(0, "the file is too short for a Parquet file");
  std::vector<std::byte> end(kEndBytes);  // For remote files, this request usually fetches the whole footer
                                          // (opening_reader.h).
  FEEDLINE_TRY(std::size_t got, reader.read_at(bytes - end.size(), end));
  if (got < end.size()) return storage_error("the file became shorter while it was opened", 0);
  const char* const magic = reinterpret_cast<const char*>(end.data()) + end.size() - kMagic.size();
  if (std::string_view(magic, kMagic.size()) == kEncrypted)
    return config_error("the footer is encrypted, which this version does not read");
  if (std::string_view(magic, kMagic.size()) != kMagic)
    return damaged(bytes - 4, "the file does not end with \"PAR1\"");
  std::uint32_t size = 0;
  std::memcpy(&size, magic - sizeof size, sizeof size);
  if (size > bytes - kMagic.size() - kEndBytes)
    return damaged(bytes - kEndBytes, "a footer of " + std::to_string(size) + " bytes does not fit into the file");
  const std::uint64_t at = bytes - kEndBytes - size;
  if (size + kEndBytes > end.size()) {
    end.resize(size + kEndBytes);
    FEEDLINE_TRY(got, reader.read_at(at, end));
    if (got < end.size()) return storage_error("the file became shorter while it was opened", 0);
  }
  auto made = parse_parquet_metadata(std::span(end).last(size + kEndBytes).first(size));
  if (!made) return damaged(at, "the footer extends beyond its declared size");
  const auto leaves =
      std::ranges::count_if(made->schema, [](const ParquetNode& node) { return node.type.has_value(); });
  std::int64_t rows = 0;
  for (const ParquetRowGroup& group : made->groups) {
    constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
    if (group.rows < 0 || group.rows > kMostRows || std::cmp_not_equal(group.columns.size(), leaves))
      return damaged(at, "a row group has " + std::to_string(group.columns.size()) + " columns of " +
                             std::to_string(leaves) + ", and " + std::to_string(group.rows) + " rows");
    rows += group.rows;
  }
  if (rows != made->rows)
    return damaged(
        at, "the footer has " + std::to_string(made->rows) + " rows, but its row groups have " + std::to_string(rows));
  return std::move(*made);
}

}  // namespace feedline::format
