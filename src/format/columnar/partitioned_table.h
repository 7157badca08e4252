// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/columnar/tables_format.h"
#include "format/sources/partitions.h"

namespace feedline::format {

// Returns a kind whose tables also have the Hive partition columns, whose values are integers, class numbers or text.
// If a file contains a column with the same name, the values in the file are used. Requires: `partitions` has the
// partition of each file in `files`, in the same order.
TableKind with_partitions(TableKind kind, std::vector<Partition> partitions, const std::vector<std::string>& files);

}  // namespace feedline::format
