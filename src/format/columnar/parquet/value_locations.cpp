// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/value_locations.h"

#include <limits>
#include <memory>
#include <utility>

namespace feedline::format {
namespace {

// The minimum average size of values that are read individually. Smaller values are copied from a page in memory, which
// is faster.
constexpr std::uint64_t kLeastBytes = 1024;

}  // namespace

ValueLocations::~ValueLocations() {
  for (const auto& page : pages_) delete page.load(std::memory_order_relaxed);
}

void ValueLocations::note(std::size_t page, Page values) {
  auto noted = std::make_unique<const Page>(std::move(values));
  const Page* none = nullptr;
  if (pages_[page].compare_exchange_strong(none, noted.get(), std::memory_order_acq_rel)) (void)noted.release();
}

bool may_lie_plain(const ParquetColumn& column, ParquetCodec codec) {
  return column.stored == ParquetType::kBytes && column.most_repetition == 0 && codec == ParquetCodec::kNone;
}

bool lie_plain(const PageHeader& header, std::uint64_t rows) {
  return header.is_data() && !header.crc && header.encoding == static_cast<std::int64_t>(ParquetEncoding::kPlain) &&
         header.packed_bytes >= rows * kLeastBytes &&
         header.bytes + header.packed_bytes < std::numeric_limits<std::uint32_t>::max();
}

ValueLocations::Page locations_of(const PageRows& rows, const PageHeader& header, std::span<const std::byte> packed) {
  ValueLocations::Page locations(rows.rows);
  for (std::size_t row = 0; row < locations.size(); ++row) {
    const std::uint64_t value = rows.value_of.empty() ? row : rows.value_of[row];
    if (value == PageRows::kNull) continue;
    const PageValues::Slice& slice = rows.values.slices[value];
    locations[row] = {
        static_cast<std::uint32_t>(header.bytes + static_cast<std::uint64_t>(slice.begin - packed.data())),
        static_cast<std::uint32_t>(slice.bytes)};
  }
  return locations;
}

}  // namespace feedline::format
