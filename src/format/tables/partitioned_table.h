// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/partitions.h"
#include "format/tables/tables_format.h"

namespace feedline::format {

// The kind whose tables also have the columns of Hive partitions: integers, class numbers of a label, or text. A
// column that a file has itself is that of the file. Requires: the partitions are of these files, in their order.
TableKind with_partitions(TableKind kind, std::vector<Partition> partitions, const std::vector<std::string>& files);

}  // namespace feedline::format
