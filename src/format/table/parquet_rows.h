// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/table/table.h"
#include "storage/storage.h"

namespace feedline::format {

// A Parquet file as a table in memory, as metadata.parquet is: text, numbers, and lists of numbers as JSON. Columns of
// other values are left out. kData: it is damaged.
Result<Table> read_parquet_rows(const std::shared_ptr<const storage::Storage>& storage, const std::string& path);

}  // namespace feedline::format
