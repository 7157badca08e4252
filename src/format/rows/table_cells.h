// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "feedline/rows.h"
#include "storage/storage.h"

namespace feedline::format {

// See feedline::read_table().
Result<TableCells> read_table_cells(const std::shared_ptr<const storage::Storage>& storage, const std::string& source);

}  // namespace feedline::format
