// SPDX-License-Identifier: Apache-2.0

// Any bytes as a Parquet file: no crash, no read out of bounds, no excessive memory. If it opens, reads every field of
// some rows.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "format/columnar/parquet/parquet_table.h"
#include "format/index/memory_reader.h"
#include "storage/storage.h"
#include "table_check.h"

using namespace feedline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const format::MemoryReader reader(std::string_view(reinterpret_cast<const char*>(data), bytes));
  const auto cache = std::make_shared<format::BlockCache>(1 << 20);
  static const auto here = storage::local_storage();  // not read from, because the reader has the bytes
  const format::ShardFile file{"fuzz.parquet", "fuzz.parquet", here, {bytes, 1}};
  if (const auto table = format::ParquetTable::open(file, reader, cache)) format::check_table(**table, reader);
  return 0;
}
