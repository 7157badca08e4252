// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index.json of a LitData dataset:
//
//     { "chunks": [ {"filename": NAME, "chunk_size": SAMPLES, "chunk_bytes": N, "dim": TOKENS or null}, ... ],
//       "config": { "data_format": ["jpeg", "int", ...], "data_spec": TEXT or null, "compression": null or "zstd:4",
//                   "compression_level": null, "chunk", "batch" or "sample", "encryption": null,
//                   "item_loader": "PyTreeLoader" or "TokensLoader", ... } }
//
// data_spec is a JSON string that describes the structure of a sample as a tree: [1, {"type": "builtins.dict",
// "context": the keys as a JSON string, "children_spec": [...]}]. Nodes of type null are leaves, which are the values.
// Source: litdata/streaming/{writer,config,serializers}.py, litdata/utilities/_pytree.py.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/row_columns/column.h"

namespace feedline::format {

struct LitChunk {
  std::string name;  // name of a file in the index's folder
  std::uint64_t samples = 0, bytes = 0;
};

struct LitIndex {
  Columns columns;
  std::vector<LitChunk> chunks;
  bool are_tokens = false;        // a single column, without sizes before the samples
  bool are_samples_zstd = false;  // each sample is compressed separately
  bool may_have_rows = false;     // chunks may store their samples as Arrow rows (arrow_rows.h)
};

// Fails with kData if the index is damaged or inconsistent, and with kConfig if it uses an unsupported feature, such as
// encrypted chunks or Parquet.
Result<LitIndex> parse_litdata_index(std::string_view text);

// Returns the paths of a data_spec's leaves, such as "image", "meta/name" or "0", or an empty list if the form of the
// data_spec is unknown.
std::vector<std::string> leaf_names(std::string_view data_spec);
// Returns the column with the given name and data_format entry.
Column litdata_column(std::string name, std::string encoding);

}  // namespace feedline::format
