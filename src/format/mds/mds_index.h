// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index.json of an MDS dataset, of version 2: what its writer makes last, so that a dataset without it is not
// finished.
//
//     { "version": 2, "shards": [ {
//         "format": "mds", "version": 2, "samples": N,
//         "column_names": [...], "column_encodings": [...], "column_sizes": [BYTES or null, ...],
//         "compression": null or "zstd:7", "hashes": ["sha1", ...],
//         "raw_data": {"basename": NAME, "bytes": N, "hashes": {"sha1": HEX}},
//         "zip_data": null or the same of the compressed file }, ... ] }
//
// Shards of lines have two files, the lines and their table of offsets, and other keys for what a line is:
//
//     "format": "csv", "tsv" or "xsv", "separator": TEXT (xsv alone), "newline": TEXT,
//         "column_names": [...], "column_encodings": ["int", "float" or "str", ...]; the first line has the names
//     "format": "json", "columns": {NAME: ENCODING, ...}, "newline": TEXT
//     "raw_meta", "zip_meta": of the table, as raw_data and zip_data
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
#include "format/columns/sample_layout.h"
#include "format/compression/compression.h"

namespace feedline::format {

struct MdsFile {
  std::string name;  // relative to the index's folder, and inside of it
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> digests = {};  // algorithm, hexadecimal digits in lower case
};

// As it was written, and as it is stored where it is compressed.
struct MdsPart {
  MdsFile raw;
  std::optional<MdsFile> zip = {};
  std::optional<Compression> compression = {};  // of zip
};

struct MdsShard {
  std::uint64_t samples = 0;
  std::size_t schema = 0;  // of the index's
  MdsPart data;
  std::optional<MdsPart> table = {};  // of a shard of lines
  std::uint64_t header_bytes = 0;     // its first line's, where that has the names of columns
};

struct MdsIndex {
  std::vector<SampleSchema> schemas;
  std::vector<MdsShard> shards;
  std::vector<std::string> classes = {};  // names of the labels, which feedline pack writes; others do not have them
};

// kData: it is damaged, or of another version or kind of shards; says which.
Result<MdsIndex> parse_mds_index(std::string_view text);

}  // namespace feedline::format
