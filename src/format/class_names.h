// SPDX-License-Identifier: Apache-2.0
#pragma once

// The names of the classes, inside each shard that `feedline pack` writes: a tar's labels are numbers, and a list that
// lies beside the shards is lost where these are copied.

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

// The first member of such a shard. Readers of WebDataset's layout skip it twice over: names within double underscores
// are metadata, and a name without a dot is no sample's. One name in a line, by label, "%" as %25 and a newline as %0A.
inline constexpr std::string_view kClassNamesMember = "__classes__";

// Empty: the shard begins with something else. kStorage: it cannot be read.
Result<std::vector<std::string>> stored_class_names(const storage::Reader& shard);

}  // namespace feedline::format
