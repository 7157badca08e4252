// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index.json of a LitData dataset:
//
//     { "chunks": [ {"filename": NAME, "chunk_size": SAMPLES, "chunk_bytes": N, "dim": TOKENS or null}, ... ],
//       "config": { "data_format": ["jpeg", "int", ...], "data_spec": TEXT or null, "compression": null or "zstd:4",
//                   "compression_level": null, "chunk", "batch" or "sample", "encryption": null,
//                   "item_loader": "PyTreeLoader" or "TokensLoader", ... } }
//
// data_spec is JSON in a text, the tree that the values are leaves of: [1, {"type": "builtins.dict", "context": the
// keys, JSON in a text, "children_spec": [...]}], a type of null being a leaf.
// Source: litdata/streaming/{writer,config,serializers}.py, litdata/utilities/_pytree.py.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/columns/column.h"

namespace feedline::format {

struct LitChunk {
  std::string name;  // of a file in the index's folder
  std::uint64_t samples = 0, bytes = 0;
};

struct LitIndex {
  Columns columns;
  std::vector<LitChunk> chunks;
  bool are_tokens = false;        // one column, whose samples have no sizes in front
  bool are_samples_zstd = false;  // each sample is compressed by itself
  bool may_have_rows = false;     // chunks may store their samples as Arrow rows (arrow_rows.h)
};

// kData: it is damaged, or describes what does not go together. kConfig: what is not read: encrypted chunks, Parquet.
Result<LitIndex> parse_litdata_index(std::string_view text);

// The leaves of a data_spec: "image", "meta/name", "0". Empty where it is not understood.
std::vector<std::string> leaf_names(std::string_view data_spec);
// The column of a name and one of data_format.
Column litdata_column(std::string name, std::string encoding);

}  // namespace feedline::format
