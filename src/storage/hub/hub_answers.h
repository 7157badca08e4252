// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parsers of the Hub's answers. Fields that Feedline does not use are skipped.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::storage {

// An entry of a listing (GET /api/datasets/ID/tree/REVISION).
struct HubFile {
  std::string path;
  std::uint64_t bytes = 0;
  // The SHA-256 of a large file, or the SHA-1 of a small one in git. Equals the ETag of its answer, and the name of its
  // blob in the local cache.
  std::string hash;
  bool is_large = false;  // in LFS or Xet: a redirect to another host serves it
  bool is_folder = false;
};
Result<std::vector<HubFile>> parse_hub_tree(std::string_view json);

// The answer for a revision (GET /api/datasets/ID/revision/REVISION).
struct HubRevision {
  std::string repository;  // differs from the requested one if the dataset was renamed; empty if not stated
  std::string commit;
};
Result<HubRevision> parse_hub_revision(std::string_view json);

// Returns the time at which a signed URL expires, in seconds since 1970, from Expires= or X-Amz-Date= and
// X-Amz-Expires=; nullopt if it states none.
std::optional<std::int64_t> expiry_of_url(std::string_view url);

}  // namespace feedline::storage
