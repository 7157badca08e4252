// SPDX-License-Identifier: Apache-2.0
#pragma once

// Class names stored inside each shard that `feedline pack` writes. Labels in a tar are numbers, and a separate list
// next to the shards gets lost when they are copied.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

// The first member of such a shard. WebDataset readers skip it for two reasons: names within double underscores are
// metadata, and a name without a dot does not belong to a sample. The member has one name per line, ordered by label,
// with "%" written as %25 and a newline as %0A.
inline constexpr std::string_view kClassNamesMember = "__classes__";

// Empty if the shard does not begin with this member. kStorage: the shard cannot be read.
Result<std::vector<std::string>> stored_class_names(const storage::Reader& shard);

}  // namespace feedline::format
