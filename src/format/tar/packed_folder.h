// SPDX-License-Identifier: Apache-2.0
#pragma once

// Folders written by `feedline pack`. Their feedline-pack.json lists the shards.

#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Returns whether the folder has a manifest.
bool has_manifest(const std::string& folder, const storage::Storage& storage);

struct PackedFolder {
  std::vector<std::string> tars;  // full paths, in the order of the manifest; empty if the shards are MDS
};
// Returns nullopt if the folder has no manifest. kConfig: packing did not finish. kData: the manifest is damaged.
Result<std::optional<PackedFolder>> packed_folder(const std::string& folder, const storage::Storage& storage);

// Replaces each packed folder in `names` with its tars. Remote names are looked up only if there is a single one or if
// they end in a slash, because each lookup is a request.
Result<std::vector<std::string>> with_packed_tars(std::vector<std::string> names, const storage::Storage& storage);

}  // namespace feedline::format
