// SPDX-License-Identifier: Apache-2.0
#pragma once

// Class names, which `feedline pack` stores in each shard. Labels in tar files are numbers, and a list of names in a
// separate file could be lost when the shards are copied.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

// The first member of a shard that contains class names. WebDataset readers skip it for two reasons: names that begin
// and end with double underscores are metadata, and a name without a dot does not belong to a sample. The member has
// one name per line, ordered by label, with "%" written as %25 and a newline as %0A.
inline constexpr std::string_view kClassNamesMember = "__classes__";

// Returns the class names of a shard, or an empty list if its first member is not kClassNamesMember. Fails with
// kStorage if the shard cannot be read.
Result<std::vector<std::string>> stored_class_names(const storage::Reader& shard);

}  // namespace feedline::format
