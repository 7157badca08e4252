// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of datasets on the Hugging Face Hub: hf://datasets/ORG/NAME[@REVISION][/path].

#include <optional>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::storage {

struct HubName {
  std::string repository;  // "ORG/NAME"
  std::string revision;    // decoded; "main" if none is given; "~parquet" is refs/convert/parquet
  std::string path;        // as written; empty for the repository

  // Returns the name with its revision.
  std::string text() const;
  // Returns the same, without the path.
  std::string root() const;
};

// Returns nullopt if the text does not name a dataset. A revision that begins with "refs/" has three parts, as in
// refs/pr/1; others end at the next slash, and may have slashes as %2F.
std::optional<HubName> hub_name(std::string_view url);

// Returns whether the revision is a whole commit hash, so that it cannot move.
bool is_commit(std::string_view revision);

}  // namespace feedline::storage
