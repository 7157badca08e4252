// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/mds/mds_index.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "format/row_columns/mds/mds_encoding.h"
#include "format/row_columns/planned_dataset.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

using Kind = text::JsonReader::Kind;
using text::JsonReader;

// A shard as written in the index, before validation.
struct Written {
  // number of samples
  std::string format, separator, newline;
  std::vector<std::string> names, encodings;
  std::vector<std::optional<std::int64_t>> sizes;
  // of the shard's files
  std::string compression;
  std::int64_t version = 2, samples = -1;
  std::optional<MdsFile> raw, zip, raw_table, zip_table;

  bool has_samples_as(const Written& other) const {
    return std::tie(format, separator, newline, names, encodings, sizes) ==
           std::tie(other.format, other.separator, other.newline, other.names, other.encodings, other.sizes);
  }
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
    return json.peek() == Kind::kNull ? json.null() : put(size, json.integer());
  });
}

bool read_file(JsonReader& json, std::optional<MdsFile>& out) {
  if (json.peek() == Kind::kNull) return json.null();
  MdsFile file;
  std::int64_t bytes = -1;
  const bool done = json.object([&](const std::string& key) {
    if (key == "basename") return put(file.name, json.string());
    if (key == "bytes") return put(bytes, json.integer());
    if (key != "hashes") return json.skip();
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

bool read_columns(JsonReader& json, Written& shard) {
  shard.names.clear();
  shard.encodings.clear();
  return json.object([&](const std::string& name) {
    shard.names.push_back(name);
    return put(shard.encodings.emplace_back(), json.string());
  });
}

bool read_shard(JsonReader& json, Written& shard) {
  return json.object([&](const std::string& key) {
    if (key == "format") return put(shard.format, json.string());
    if (key == "version") return put(shard.version, json.integer());
    if (key == "samples") return put(shard.samples, json.integer());
    if (key == "column_names") return read_texts(json, shard.names);
    if (key == "column_encodings") return read_texts(json, shard.encodings);
    if (key == "column_sizes") return read_sizes(json, shard.sizes);
    if (key == "columns") return read_columns(json, shard);
    if (key == "newline") return put(shard.newline, json.string());
    if (key == "separator") return put(shard.separator, json.string());
    if (key == "raw_data") return read_file(json, shard.raw);
    if (key == "zip_data") return read_file(json, shard.zip);
    if (key == "raw_meta") return read_file(json, shard.raw_table);
    if (key == "zip_meta") return read_file(json, shard.zip_table);
    if (key == "compression" && json.peek() == Kind::kString) return put(shard.compression, json.string());
    return json.skip();
  });
}

std::unexpected<Error> wrong(std::size_t shard, const std::string& what) {
  return data_error("shard " + std::to_string(shard) + " of the index: " + what, "format");
}

// Checks that a path is inside the folder of the index, so that an index cannot cause reads of other files.
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
  const bool is_of_lines = shard.format != "mds";
  const bool fits = shard.names.size() == shard.encodings.size() && !shard.names.empty() &&
                    (is_of_lines || shard.names.size() == shard.sizes.size());
  if (!fits)
    return wrong(number, "the shard has " + std::to_string(shard.names.size()) + " column names, " +
                             std::to_string(shard.encodings.size()) + " encodings and " +
                             std::to_string(shard.sizes.size()) + " sizes");
  Columns columns;
  for (std::size_t i = 0; i < shard.names.size(); ++i) {
    const std::string &name = shard.names[i], &encoding = shard.encodings[i];
    if (std::ranges::find(columns, name, &Column::name) != columns.end())
      return wrong(number, "two columns are called '" + name + "'");
    if (is_of_lines) {
      columns.push_back(line_column(name, encoding));
    } else {
      FEEDLINE_TRY(columns.emplace_back(), mds_column(name, encoding, shard.sizes[i]));
    }
  }
  return columns;
}

// Parses the columns of the supported formats.
Result<SampleSchema> schema_of(const Written& shard, std::size_t number) {
  SampleSchema schema;
  FEEDLINE_TRY(schema.columns, columns_of(shard, number));
  if (shard.format == "mds") return schema;
  if (shard.format == "json") {
    schema.layout = SampleLayout::kJson;
    return schema;
  }
  schema.layout = SampleLayout::kSeparated;
  schema.newline = shard.newline;
  schema.separator = shard.format == "csv" ? "," : shard.format == "tsv" ? "\t" : shard.separator;
  if (schema.newline.empty() || schema.separator.empty())
    return wrong(number, "the shard does not specify the separators of lines and cells");
  return schema;
}

// Returns the size of the first line.
std::uint64_t header_bytes(const SampleSchema& schema) {
  if (schema.layout != SampleLayout::kSeparated) return 0;
  std::uint64_t bytes = schema.newline.size() + (schema.columns.size() - 1) * schema.separator.size();
  for (const Column& column : schema.columns) bytes += column.name.size();
  return bytes;
}

// Parses a compression setting such as "zstd:7". Ignores the compression level, which readers do not need.
std::optional<Compression> compression_of(std::string_view name) {
  name = name.substr(0, name.find(':'));
  if (name == "zstd") return Compression::kZstd;
  if (name == "gz") return Compression::kGzip;
  if (name == "br") return Compression::kBrotli;
  if (name == "bz2") return Compression::kBzip2;
  if (name == "snappy") return Compression::kSnappy;
  return {};
}

Result<MdsPart> part_of(const Written& shard, std::optional<MdsFile> raw, std::optional<MdsFile> zip,
                        std::string_view name, std::size_t number) {
  if (!raw) return wrong(number, "the shard has no " + std::string(name));
  MdsPart part{std::move(*raw), std::move(zip)};
  for (const MdsFile* file : {&part.raw, part.zip ? &*part.zip : nullptr})
    if (file != nullptr && !is_inside(file->name))
      return wrong(number, "'" + file->name + "' is not the name of a file below the index's folder");
  if (!part.zip) return part;
  part.compression = compression_of(shard.compression);
  if (!part.compression)
    return wrong(number, "the shard is compressed with '" + shard.compression +
                             "'; only br, bz2, gz, snappy and zstd are supported");
  return part;
}

// Parses the entries of a shard's files.
Result<MdsShard> checked(Written& shard, std::size_t number) {
  constexpr std::string_view kFormats[] = {"mds", "json", "csv", "tsv", "xsv"};
  if (shard.version != 2)
    return wrong(number, "the shard has version " + std::to_string(shard.version) + "; only version 2 is supported");
  if (std::ranges::find(kFormats, shard.format) == std::end(kFormats))
    return wrong(number,
                 "the shard stores samples as '" + shard.format + "'; only mds, json, csv, tsv and xsv are supported");
  if (shard.samples < 0 || shard.samples >= std::numeric_limits<std::uint32_t>::max())
    return wrong(number, "the number of samples is missing or invalid");
  MdsShard made;
  made.samples = static_cast<std::uint64_t>(shard.samples);
  FEEDLINE_TRY(made.data, part_of(shard, std::move(shard.raw), std::move(shard.zip), "raw_data", number));
  if (shard.format == "mds") return made;
  FEEDLINE_TRY(made.table, part_of(shard, std::move(shard.raw_table), std::move(shard.zip_table), "raw_meta", number));
  return made;
}

}  // namespace

Result<MdsIndex> parse_mds_index(std::string_view text) {
  JsonReader json(text);
  MdsIndex index;
  std::int64_t version = -1;
  Written shard, before;
  Result<void> refused;
  const auto take = [&]() -> Result<void> {
    const std::size_t number = index.shards.size();
    FEEDLINE_TRY(MdsShard made, checked(shard, number));
    if (number > 0 && shard.has_samples_as(before)) {
      made.schema = index.shards.back().schema;
    } else {
      FEEDLINE_TRY(SampleSchema schema, schema_of(shard, number));
      FEEDLINE_TRY(made.schema, number_of(std::move(schema), index.schemas));
      before = shard;
    }
    made.header_bytes = header_bytes(index.schemas[made.schema]);
    index.shards.push_back(std::move(made));
    return {};
  };
  const bool done = json.object([&](const std::string& key) {
    if (key == "version") return put(version, json.integer());
    if (key == "classes" && json.peek() == Kind::kArray) return read_texts(json, index.classes);
    if (key != "shards") return json.skip();
    return json.array([&] {
      shard = {};
      if (!read_shard(json, shard)) return false;
      refused = take();
      return refused.has_value();
    });
  });
  if (!refused) return std::unexpected(refused.error());
  if (!done || !json.finish()) {
    auto error = data_error("the index is not from an MDS dataset: " + json.error()->what, "format");
    error.error().where.offset = json.offset();
    return error;
  }
  if (version != 2)
    return data_error("the index has version " + std::to_string(version) + "; only version 2 is supported", "format");
  return index;
}

}  // namespace feedline::format
