// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/litdata/litdata_entry.h"

#include <map>
#include <utility>

#include "format/columnar/tables_inspection.h"
#include "format/compression/compression.h"
#include "format/index/plain_copy.h"
#include "format/row_columns/columns_format.h"
#include "format/row_columns/index_file.h"
#include "format/row_columns/litdata/arrow_rows.h"
#include "format/row_columns/litdata/framed_chunk.h"
#include "format/row_columns/litdata/litdata_index.h"

namespace feedline::format {
namespace {

Result<bool> is_litdata(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const bool is_index, begins_with_key(source, storage, {"chunks", "config", "updated_at"}));
  return is_index || holds_shards(source, storage, [](std::string_view name) {
           return name.starts_with("chunk-") && name.ends_with(".bin");
         });
}

// Decompresses a chunk. Does not check the decompressed size, because the index does not have the correct uncompressed
// size for all versions of LitData's writer.
Result<void> make_plain(const std::string& path, const storage::Reader& reader, cache::OutputFile& output) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32U;  // the range of u32 offsets
  FEEDLINE_TRY(auto stream, StreamDecompression::start(Compression::kZstd, kMost));
  const auto take = [&](std::span<const std::byte> plain) { return output.append(plain); };
  std::vector<std::byte> piece(std::size_t{1} << 20U);
  std::uint64_t offset = 0;
  const auto run = [&]() -> Result<void> {
    while (true) {
      FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, piece));
      if (got == 0) return stream.finish(take);
      FEEDLINE_CHECK_OK(stream.feed(std::span<const std::byte>(piece).first(got), take));
      offset += got;
    }
  };
  auto done = run();
  if (!done && done.error().code == ErrorCode::kData) {
    done.error().where.shard = path;
    done.error().where.offset = offset;
  }
  return done;
}

// Returns the path of a chunk, or of its decompressed copy. When LitData reads a local folder, it replaces compressed
// chunks with uncompressed ones without ".zstd" or ".zstd:4" in their names, and does not update the index.
std::string in_place_of(const std::string& path, const storage::Storage& storage) {
  const std::size_t begin = path.find(".zstd", path.rfind('/') + 1), end = path.find(".bin", begin);
  if (storage.is_remote() || begin == path.npos || end == path.npos || storage.stat(path)) return path;
  std::string plain = path.substr(0, begin) + path.substr(end);
  return storage.stat(plain) ? plain : path;
}

Result<ShardFile> locate(const std::string& named, std::uint64_t samples,
                         std::shared_ptr<const storage::Storage> storage, cache::Notes* notes) {
  const std::string path = in_place_of(named, *storage);
  MakePlain make;
  if (path.substr(path.rfind('/') + 1).contains(".zstd")) {
    make = [&](const storage::Reader& reader, cache::OutputFile& output) { return make_plain(path, reader, output); };
  } else {
    FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(path, storage::Access::kRead));
    FEEDLINE_TRY(const auto version, reader->version());
    FEEDLINE_TRY(const bool framed, is_framed(*reader));
    if (!framed) return ShardFile{path, path, std::move(storage), version, std::move(reader)};
    make = [&](const storage::Reader& from, cache::OutputFile& output) -> Result<void> {
      auto done = write_unframed(from, samples, output);
      if (!done && done.error().code == ErrorCode::kData) done.error().where.shard = path;
      return done;
    };
  }
  FEEDLINE_TRY(std::string plain, made_plain(*storage, path, ".litdata", make, notes));
  FEEDLINE_TRY(const auto version, storage::local_storage()->stat(plain));
  return ShardFile{path, std::move(plain), storage::local_storage(), version};
}

PlannedShard plan_of(const std::string& folder, const LitChunk& chunk, std::size_t schema) {
  PlannedShard shard;
  shard.schema = schema;
  shard.name = folder + "/" + chunk.name;
  shard.samples = chunk.samples;
  shard.ends_with_last_sample = false;  // Some versions of LitData append the samples again as Arrow rows.
  if (!chunk.name.contains(".zstd")) shard.stored_path = shard.name;
  shard.locate = [path = shard.name, samples = chunk.samples](std::shared_ptr<const storage::Storage> storage,
                                                              cache::Notes* notes) {
    return locate(path, samples, std::move(storage), notes);
  };
  return shard;
}

// One folder of a source.
struct LitFolder {
  std::string path;
  LitIndex index;
  bool has_rows = false;
};

// Checks the first chunk that exists. If there is none, opening the dataset fails later.
Result<bool> has_arrow_rows(const LitFolder& folder, const storage::Storage& storage) {
  if (!folder.index.may_have_rows) return false;
  for (const LitChunk& chunk : folder.index.chunks) {
    if (chunk.name.contains(".zstd")) return false;
    const auto reader = storage.open(folder.path + "/" + chunk.name, storage::Access::kRead);
    if (!reader && storage.is_remote()) return std::unexpected(reader.error());
    if (!reader) continue;
    const auto has_rows = begins_as_arrow_rows(**reader);
    if (!has_rows && has_rows.error().code != ErrorCode::kData) return has_rows;
    if (has_rows) return has_rows;
  }
  return false;
}

Result<LitFolder> read_folder(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const IndexLocation location, index_location(source, storage));
  memory::ByteBuffer room;
  FEEDLINE_TRY(const std::string_view text, read_index_file(location, storage, room));
  auto index = parse_litdata_index(text);
  if (!index) {
    if (index.error().where.shard.empty()) index.error().where.shard = location.index;
    return std::unexpected(std::move(index).error());
  }
  LitFolder folder{location.folder, std::move(*index)};
  FEEDLINE_TRY(folder.has_rows, has_arrow_rows(folder, storage));
  return folder;
}

Result<std::vector<LitFolder>> read_folders(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const auto parts, index_sources(source, storage));
  std::vector<LitFolder> folders;
  for (const std::string& part : parts) {
    FEEDLINE_TRY(folders.emplace_back(), read_folder(part, storage));
    const LitFolder &first = folders.front(), &last = folders.back();
    if (first.has_rows != last.has_rows)
      return config_error("'" + (first.has_rows ? first : last).path + "' stores its samples as Arrow rows, but '" +
                          (first.has_rows ? last : first).path +
                          "' does not: open them separately, or write both with one version of LitData");
  }
  return folders;
}

Result<PlannedDataset> plan_of(std::vector<LitFolder> folders) {
  PlannedDataset dataset{"litdata", {}, {}};
  for (LitFolder& folder : folders) {
    SampleSchema schema{std::move(folder.index.columns)};
    if (folder.index.are_tokens) schema.layout = SampleLayout::kOneValue;
    if (folder.index.are_samples_zstd) schema.compression = Compression::kZstd;
    FEEDLINE_TRY(const std::size_t number, number_of(std::move(schema), dataset.schemas));
    for (const LitChunk& chunk : folder.index.chunks) dataset.shards.push_back(plan_of(folder.path, chunk, number));
  }
  return dataset;
}

// The chunks in folders with Arrow rows, and the table kind of these chunks.
struct LitTables {
  std::vector<std::string> chunks;
  TableKind kind;
};

LitTables tables_of(const std::vector<LitFolder>& folders) {
  std::vector<std::string> chunks;
  std::map<std::string, std::uint64_t> samples;
  for (const LitFolder& folder : folders)
    for (const LitChunk& chunk : folder.index.chunks)
      samples[chunks.emplace_back(folder.path + "/" + chunk.name)] = chunk.samples;
  return {std::move(chunks), arrow_rows_kind(std::move(samples))};
}

Result<std::shared_ptr<const Format>> open_litdata(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto folders, read_folders(source, *options.storage));
  if (folders.front().has_rows) {
    LitTables tables = tables_of(folders);
    return TablesFormat::open(std::move(tables.kind), source, tables.chunks, options);
  }
  FEEDLINE_TRY(auto dataset, plan_of(std::move(folders)));
  return ColumnsFormat::open(source, std::move(dataset), options);
}

Result<Inspection> inspect_litdata(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto folders, read_folders(source, *options.storage));
  if (folders.front().has_rows) {
    const LitTables tables = tables_of(folders);
    return inspect_columns(tables.kind, source, tables.chunks, options);
  }
  FEEDLINE_TRY(auto dataset, plan_of(std::move(folders)));
  return ColumnsFormat::inspect(source, std::move(dataset), options);
}

}  // namespace

const FormatEntry& litdata_entry() {
  static constexpr FormatEntry kEntry{"litdata", is_litdata, open_litdata, inspect_litdata};
  return kEntry;
}

}  // namespace feedline::format
