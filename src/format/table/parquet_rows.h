// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/table/table.h"
#include "storage/storage.h"

namespace feedline::format {

// Reads a Parquet file such as metadata.parquet as a table in memory: text, bytes, numbers, and lists of numbers as
// JSON. Other columns are listed as unread. kData: the file is damaged.
Result<Table> read_parquet_rows(const std::shared_ptr<const storage::Storage>& storage, const std::string& path);

}  // namespace feedline::format
