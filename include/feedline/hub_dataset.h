// SPDX-License-Identifier: Apache-2.0
#pragma once

// Datasets on the Hugging Face Hub, by name.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// Returns "hf://datasets/ORG/NAME@COMMIT/path" for "hf://datasets/ORG/NAME[@REVISION][/path]". A branch or tag is looked
// up at each call; a renamed dataset gets its new name. kConfig: the URL does not name a dataset. kStorage: the Hub
// refuses, or is not reachable.
Result<std::string> pin_hub(const std::string& url);

struct HubEntry {
  std::string path;  // relative to the repository
  std::uint64_t bytes = 0;
};
// Returns all files below the folder that a result of pin_hub() names, sorted by path.
Result<std::vector<HubEntry>> list_hub(const std::string& pinned);

// Converts a dataset card's YAML to JSON, with all scalars as strings except booleans and nulls. kData: it is not valid.
Result<std::string> card_as_json(std::string_view yaml);

}  // namespace feedline
