// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index.json of an MDS dataset, version 2. The writer creates this file last, so a dataset without it is
// incomplete.
//
//     { "version": 2, "shards": [ {
//         "format": "mds", "version": 2, "samples": N,
//         "column_names": [...], "column_encodings": [...], "column_sizes": [BYTES or null, ...],
//         "compression": null or "zstd:7", "hashes": ["sha1", ...],
//         "raw_data": {"basename": NAME, "bytes": N, "hashes": {"sha1": HEX}},
//         "zip_data": null or the same for the compressed file }, ... ] }
//
// Shards of text lines have two files, one with the lines and one with their offsets, and additional keys that describe
// the lines:
//
//     "format": "csv", "tsv" or "xsv", "separator": TEXT (only xsv), "newline": TEXT,
//         "column_names": [...], "column_encodings": ["int", "float" or "str", ...]; the first line has the names
//     "format": "json", "columns": {NAME: ENCODING, ...}, "newline": TEXT
//     "raw_meta", "zip_meta": the table's entries, like raw_data and zip_data
//
// Source: streaming/base/format/{index,mds/writer,base/writer,json/writer,xsv/writer}.py.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/compression/compression.h"
#include "format/row_columns/sample_layout.h"

namespace feedline::format {

struct MdsFile {
  std::string name;  // relative to the index's folder, and below it
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> digests = {};  // algorithm, lower-case hexadecimal digits
};

// The uncompressed file and, if the shard is compressed, the stored file.
struct MdsPart {
  MdsFile raw;
  std::optional<MdsFile> zip = {};
  std::optional<Compression> compression = {};  // compression of zip
};

struct MdsShard {
  std::uint64_t samples = 0;
  std::size_t schema = 0;  // number in the index
  MdsPart data;
  std::optional<MdsPart> table = {};  // for a shard of lines
  std::uint64_t header_bytes = 0;     // size of the header line with the column names, if there is one
};

struct MdsIndex {
  std::vector<SampleSchema> schemas;
  std::vector<MdsShard> shards;
  std::vector<std::string> classes = {};  // label names, which feedline pack writes; other writers do not
};

// Fails with kData if the index is damaged, or has an unsupported version or shard format.
Result<MdsIndex> parse_mds_index(std::string_view text);

}  // namespace feedline::format
