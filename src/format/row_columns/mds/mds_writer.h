// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes MDS shards and their index byte by byte, for tests and fuzzing.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/compression/compressed_fixture.h"
#include "format/row_columns/mds/digest.h"

namespace feedline::format {

struct MdsColumn {
  std::string name, encoding;
  std::optional<std::uint32_t> size = {};
};

template <typename Number>
std::string raw_number(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Returns a serialized sample. `values` has one value per column, in the same order.
inline std::string mds_sample(const std::vector<MdsColumn>& columns, const std::vector<std::string>& values) {
  std::string sizes, data;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].size) sizes += raw_number(static_cast<std::uint32_t>(values[i].size()));
    data += values[i];
  }
  return sizes + data;
}

inline std::string mds_shard(const std::vector<std::string>& samples, std::string_view config = "{\"version\": 2}") {
  std::uint32_t end = static_cast<std::uint32_t>(4 + 4 * (samples.size() + 1) + config.size());
  std::string table = raw_number(static_cast<std::uint32_t>(samples.size())) + raw_number(end), data;
  for (const std::string& sample : samples) {
    table += raw_number(end += static_cast<std::uint32_t>(sample.size()));
    data += sample;
  }
  return table + std::string(config) + data;
}

inline std::string digest_of_text(std::string_view algorithm, std::string_view text) {
  const auto digest = make_digest(algorithm);
  digest->add(std::as_bytes(std::span(text)));
  return digest->hex();
}

inline std::string mds_file(const std::string& name, std::string_view content, const std::vector<std::string>& hashes) {
  std::string text =
      "{\"basename\": \"" + name + "\", \"bytes\": " + std::to_string(content.size()) + ", \"hashes\": {";
  for (std::size_t i = 0; i < hashes.size(); ++i)
    text += (i == 0 ? "\"" : ", \"") + hashes[i] + "\": \"" + digest_of_text(hashes[i], content) + "\"";
  return text + "}}";
}

// Returns the index entry for a shard. `zipped` is the name of the compressed file: the shard's name with a suffix, or
// empty if there is none.
inline std::string mds_entry_of(const std::vector<MdsColumn>& columns, const std::string& name, std::size_t samples,
                                std::string_view shard, const std::vector<std::string>& hashes = {},
                                const std::string& compression = "", std::string_view zipped = "") {
  std::string names, encodings, sizes;
  for (const MdsColumn& column : columns) {
    const std::string comma = names.empty() ? "" : ", ";
    names += comma + "\"" + column.name + "\"";
    encodings += comma + "\"" + column.encoding + "\"";
    sizes += comma + (column.size ? std::to_string(*column.size) : "null");
  }
  const std::string end = "." + compression.substr(0, compression.find(':'));
  return "{\"column_encodings\": [" + encodings + "], \"column_names\": [" + names + "], \"column_sizes\": [" + sizes +
         "], \"compression\": " + (compression.empty() ? "null" : "\"" + compression + "\"") +
         ", \"format\": \"mds\", \"hashes\": [], \"raw_data\": " + mds_file(name, shard, hashes) +
         ", \"samples\": " + std::to_string(samples) + ", \"size_limit\": 67108864, \"version\": 2, \"zip_data\": " +
         (zipped.empty() ? "null" : mds_file(name + end, zipped, hashes)) + "}";
}

// Writes lines with a table of their offsets. The format is "json" with columns, or "csv", "tsv" or "xsv" with a header
// line.
struct MdsLines {
  std::string format;
  std::vector<MdsColumn> columns;
  std::string separator = ",", newline = "\n";

  std::string header() const {
    std::string text;
    for (const MdsColumn& column : columns) text += (text.empty() ? "" : separator) + column.name;
    return format == "json" ? "" : text + newline;
  }
  std::string said() const {
    std::string names, encodings, both;
    for (const MdsColumn& column : columns) {
      const std::string comma = names.empty() ? "" : ", ";
      names += comma + "\"" + column.name + "\"";
      encodings += comma + "\"" + column.encoding + "\"";
      both += comma + "\"" + column.name + "\": \"" + column.encoding + "\"";
    }
    std::string text = format == "json"
                           ? "\"columns\": {" + both + "}"
                           : "\"column_names\": [" + names + "], \"column_encodings\": [" + encodings + "]";
    if (format == "xsv") text += ", \"separator\": \"" + separator + "\"";
    return text + ", \"newline\": \"" + (newline == "\r\n" ? "\\r\\n" : "\\n") + "\"";
  }
};

struct MdsLineFiles {
  std::string lines, table;
};

inline MdsLineFiles mds_lines(const MdsLines& kind, const std::vector<std::string>& samples) {
  MdsLineFiles files{kind.header(), raw_number(static_cast<std::uint32_t>(samples.size()))};
  files.table += raw_number(static_cast<std::uint32_t>(files.lines.size()));
  for (const std::string& sample : samples) {
    files.lines += sample;
    files.table += raw_number(static_cast<std::uint32_t>(files.lines.size()));
  }
  files.table += "{}";
  return files;
}

// Returns the index entry for the lines.
inline std::string mds_entry_of(const MdsLines& kind, const std::string& name, std::size_t samples,
                                const MdsLineFiles& files, const std::vector<std::string>& hashes = {},
                                const std::string& compression = "", const MdsLineFiles& zipped = {}) {
  const std::string end = "." + compression.substr(0, compression.find(':'));
  const auto zip = [&](const std::string& file, const std::string& content) {
    return compression.empty() ? "null" : mds_file(file + end, content, hashes);
  };
  return "{" + kind.said() + ", \"compression\": " + (compression.empty() ? "null" : "\"" + compression + "\"") +
         ", \"format\": \"" + kind.format + "\", \"raw_data\": " + mds_file(name, files.lines, hashes) +
         ", \"raw_meta\": " + mds_file(name + ".meta", files.table, hashes) +
         ", \"samples\": " + std::to_string(samples) + ", \"version\": 2, \"zip_data\": " + zip(name, zipped.lines) +
         ", \"zip_meta\": " + zip(name + ".meta", zipped.table) + "}";
}

inline std::string mds_index(const std::vector<std::string>& shards) {
  std::string text = "{\"shards\": [";
  for (std::size_t i = 0; i < shards.size(); ++i) text += (i == 0 ? "" : ", ") + shards[i];
  return text + "], \"version\": 2}";
}

}  // namespace feedline::format
