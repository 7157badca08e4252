// SPDX-License-Identifier: Apache-2.0
#include "format/mds/mds_index.h"

#include <algorithm>
#include <limits>

#include "format/json_reader.h"
#include "format/mds/mds_encoding.h"

namespace feedline::format {
namespace {

using Type = JsonReader::Type;

// A shard as it is written, before anything of it is believed.
struct Written {
  std::string format, compression;
  std::int64_t version = 2, samples = -1;
  std::vector<std::string> names, encodings;
  std::vector<std::optional<std::int64_t>> sizes;
  std::optional<MdsFile> raw, zip;
};

template <typename Value>
bool put(Value& value, auto read) {
  if (!read) return false;
  value = std::move(*read);
  return true;
}

bool read_texts(JsonReader& json, std::vector<std::string>& texts) {
  texts.clear();
  return json.array([&] { return put(texts.emplace_back(), json.string()); });
}

bool read_sizes(JsonReader& json, std::vector<std::optional<std::int64_t>>& sizes) {
  sizes.clear();
  return json.array([&] {
    auto& size = sizes.emplace_back();
    return json.peek() == Type::kNull ? json.null() : put(size, json.integer());
  });
}

bool read_file(JsonReader& json, std::optional<MdsFile>& out) {
  if (json.peek() == Type::kNull) return json.null();
  MdsFile file;
  std::int64_t bytes = -1;
  const bool done = json.object([&](const std::string& key) {
    if (key == "basename") return put(file.name, json.string());
    if (key == "bytes") return put(bytes, json.integer());
    if (key != "hashes") return json.skip().has_value();
    return json.object([&](const std::string& algorithm) {
      auto& digest = file.digests.emplace_back(algorithm, "");
      return put(digest.second, json.string());
    });
  });
  if (!done || bytes < 0) return false;
  file.bytes = static_cast<std::uint64_t>(bytes);
  out = std::move(file);
  return true;
}

bool read_shard(JsonReader& json, Written& shard) {
  return json.object([&](const std::string& key) {
    if (key == "format") return put(shard.format, json.string());
    if (key == "version") return put(shard.version, json.integer());
    if (key == "samples") return put(shard.samples, json.integer());
    if (key == "column_names") return read_texts(json, shard.names);
    if (key == "column_encodings") return read_texts(json, shard.encodings);
    if (key == "column_sizes") return read_sizes(json, shard.sizes);
    if (key == "raw_data") return read_file(json, shard.raw);
    if (key == "zip_data") return read_file(json, shard.zip);
    if (key == "compression" && json.peek() == Type::kString) return put(shard.compression, json.string());
    return json.skip().has_value();
  });
}

std::unexpected<Error> wrong(std::size_t shard, const std::string& what) {
  return data_error("shard " + std::to_string(shard) + " of the index: " + what, "format");
}

// A path below the index's folder: an index must not make others read what lies elsewhere.
bool is_inside(std::string_view name) {
  if (name.empty() || name.starts_with('/') || name.find('\0') != name.npos || name.contains("://")) return false;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part == "..") return false;
    name.remove_prefix(std::min(name.size(), part.size() + 1));
  }
  return true;
}

Result<Columns> columns_of(const Written& shard, std::size_t number) {
  if (shard.names.size() != shard.encodings.size() || shard.names.size() != shard.sizes.size() || shard.names.empty())
    return wrong(number, "it has " + std::to_string(shard.names.size()) + " names of columns, " +
                             std::to_string(shard.encodings.size()) + " encodings and " +
                             std::to_string(shard.sizes.size()) + " sizes");
  Columns columns;
  for (std::size_t i = 0; i < shard.names.size(); ++i) {
    if (std::ranges::find(columns, shard.names[i], &Column::name) != columns.end())
      return wrong(number, "two columns are called '" + shard.names[i] + "'");
    FEEDLINE_TRY(columns.emplace_back(), mds_column(shard.names[i], shard.encodings[i], shard.sizes[i]));
  }
  return columns;
}

// "zstd:7": the level does not matter to who reads.
std::optional<Compression> compression_of(std::string_view name) {
  name = name.substr(0, name.find(':'));
  if (name == "zstd") return Compression::kZstd;
  if (name == "gz") return Compression::kGzip;
  if (name == "br") return Compression::kBrotli;
  if (name == "bz2") return Compression::kBzip2;
  if (name == "snappy") return Compression::kSnappy;
  return {};
}

Result<MdsShard> checked(Written& shard, std::size_t number) {
  if (shard.version != 2) return wrong(number, "it is of version " + std::to_string(shard.version) + ", and 2 is read");
  if (shard.format != "mds") return wrong(number, "it holds samples as '" + shard.format + "', and 'mds' is read");
  if (shard.samples < 0 || shard.samples >= std::numeric_limits<std::uint32_t>::max())
    return wrong(number, "it says no number of samples that a shard can have");
  if (!shard.raw) return wrong(number, "it has no raw_data");
  MdsShard made{static_cast<std::uint64_t>(shard.samples), std::move(*shard.raw), std::move(shard.zip)};
  for (const MdsFile* file : {&made.raw, made.zip ? &*made.zip : nullptr})
    if (file != nullptr && !is_inside(file->name))
      return wrong(number, "'" + file->name + "' is no name of a file below the index's folder");
  if (!made.zip) return made;
  made.compression = compression_of(shard.compression);
  if (!made.compression)
    return wrong(number, "it is compressed by '" + shard.compression + "', and br, bz2, gz, snappy and zstd are read");
  return made;
}

}  // namespace

Result<MdsIndex> parse_mds_index(std::string_view text) {
  JsonReader json(text);
  MdsIndex index;
  std::int64_t version = -1;
  Written shard, first;
  Result<void> refused;
  const auto take = [&]() -> Result<void> {
    FEEDLINE_TRY(MdsShard made, checked(shard, index.shards.size()));
    const std::size_t number = index.shards.size();
    if (number == 0) {
      FEEDLINE_TRY(index.columns, columns_of(shard, number));
      first = shard;
    } else if (shard.names != first.names || shard.encodings != first.encodings || shard.sizes != first.sizes) {
      return wrong(number, "it has other columns than the first one");
    }
    index.shards.push_back(std::move(made));
    return {};
  };
  const bool done = json.object([&](const std::string& key) {
    if (key == "version") return put(version, json.integer());
    if (key == "classes" && json.peek() == Type::kArray) return read_texts(json, index.classes);
    if (key != "shards") return json.skip().has_value();
    return json.array([&] {
      shard = {};
      if (!read_shard(json, shard)) return false;
      refused = take();
      return refused.has_value();
    });
  });
  if (!refused) return std::unexpected(refused.error());
  if (!done || !json.at_end()) {
    auto error = data_error(
        "the index is damaged: it is no JSON of an MDS dataset from byte " + std::to_string(json.offset()) + " on",
        "format");
    error.error().where.offset = json.offset();
    return error;
  }
  if (version != 2)
    return data_error("the index is of version " + std::to_string(version) + ", and 2 is read", "format");
  return index;
}

}  // namespace feedline::format
