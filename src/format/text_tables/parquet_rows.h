// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/text_tables/table.h"
#include "storage/storage.h"

namespace feedline::format {

// Reads a Parquet file such as metadata.parquet into a table in memory. Supports text, bytes, numbers, and lists of
// numbers, which become JSON. Other columns are listed as unread. Fails with kData if the file is damaged.
Result<Table> read_parquet_rows(const std::shared_ptr<const storage::Storage>& storage, const std::string& path);

}  // namespace feedline::format
