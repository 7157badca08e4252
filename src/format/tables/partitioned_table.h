// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/partitions.h"
#include "format/tables/tables_format.h"

namespace feedline::format {

// A kind whose tables also have the columns of Hive partitions: integers, class numbers of a label, or text. If a file
// has such a column itself, that one is used. Requires: the partitions are those of these files, in this order.
TableKind with_partitions(TableKind kind, std::vector<Partition> partitions, const std::vector<std::string>& files);

}  // namespace feedline::format
