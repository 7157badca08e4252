// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/columnar/tables_format.h"
#include "format/format.h"

namespace feedline::format {

// Reads every row of all shards that can be opened. Requires: options.storage.
Result<Inspection> inspect_columns(const TableKind& kind, const std::string& source,
                                   const std::vector<std::string>& shards, const OpenOptions& options);

}  // namespace feedline::format
