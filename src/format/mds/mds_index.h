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
// Source: streaming/base/format/{index,mds/writer,base/writer}.py.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/columns/column.h"
#include "format/compression/compression.h"

namespace feedline::format {

struct MdsFile {
  std::string name;  // relative to the index's folder, and inside of it
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> digests = {};  // algorithm, hexadecimal digits in lower case
};

struct MdsShard {
  std::uint64_t samples = 0;
  MdsFile raw;
  std::optional<MdsFile> zip = {};
  std::optional<Compression> compression = {};
};

struct MdsIndex {
  Columns columns;
  std::vector<MdsShard> shards;
  std::vector<std::string> classes = {};  // names of the labels, which feedline pack writes; others do not have them
};

// kData: it is damaged, of another version or kind of shards, or its shards have different columns; says which.
Result<MdsIndex> parse_mds_index(std::string_view text);

}  // namespace feedline::format
