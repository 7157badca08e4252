// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads folders written by `feedline pack`, whose feedline-pack.json (the manifest) lists the shards.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// The names of all manifests begin with this prefix: those of ranges of shards and of unfinished folders too.
inline constexpr std::string_view kManifestPrefix = "feedline-pack.";

// Returns whether the folder has a manifest.
bool has_manifest(const std::string& folder, const storage::Storage& storage);

struct PackedFolder {
  std::vector<std::string> shards;  // full paths, in the order of the manifest
  std::vector<std::string> fields;  // OpenOptions::fields that read all columns; empty if they are not needed

  bool has(std::string_view extension) const;  // of all shards; not ".mds", as the index of MDS lists the shards
};
// Returns nullopt if the folder has no manifest. Fails with kConfig if packing did not finish, and with kData if the
// manifest is damaged.
Result<std::optional<PackedFolder>> packed_folder(const std::string& folder, const storage::Storage& storage);

// Replaces each packed folder in `names` with its tar files. Remote names are checked only if they end in a slash or if
// there is only one, because each check needs a request.
Result<std::vector<std::string>> with_packed_tars(std::vector<std::string> names, const storage::Storage& storage);

}  // namespace feedline::format
