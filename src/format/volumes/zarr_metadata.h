// SPDX-License-Identifier: Apache-2.0
#pragma once

// The metadata of Zarr arrays: zarr.json of version 3, .zarray of version 2.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "format/volumes/chunk_codec.h"

namespace feedline::format {

struct ZarrArray {
  ArraySpec spec;
  // Of the chunks in `layout`, or of the shards that contain them.
  Shape stored;
  ChunkLayout layout;  // of chunks, or of a shard's inner chunks
  bool has_shards = false;
  bool has_index_first = false;  // of a shard: at its start instead of its end
  bool has_index_sum = true;     // CRC-32C
  Element fill{};
  std::string prefix;     // "c" and a separator, or empty
  std::string separator;  // between the indexes in a chunk's name

  // Returns the name of a chunk or shard below the array's folder.
  std::string key(std::span<const std::int64_t> indexes) const;
};

// Parses the metadata of an array. kData: it is not the metadata of an array, contradicts itself, or requires a codec,
// an extension or a dtype that is not supported; the message names the key.
Result<ZarrArray> parse_zarr3(std::string_view json);
Result<ZarrArray> parse_zarr2(std::string_view json);

// Returns whether zarr.json describes a group. Errors: as above.
Result<bool> is_zarr3_group(std::string_view json);
// Returns the paths of the arrays in the consolidated metadata of a group, either zarr.json or .zmetadata; empty if
// there is none.
std::vector<std::string> consolidated_arrays(std::string_view json);

}  // namespace feedline::format
