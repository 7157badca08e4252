// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/partitions.h"
#include "format/tables/tables_format.h"

namespace feedline::format {

// Returns a kind whose tables also have the columns of Hive partitions: integers, class numbers of a label, or text. If
// a file contains a column of that name, its values are used. Requires: the partitions of these files, in the same
// order.
TableKind with_partitions(TableKind kind, std::vector<Partition> partitions, const std::vector<std::string>& files);

}  // namespace feedline::format
