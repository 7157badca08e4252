// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/planned_dataset.h"

#include <algorithm>
#include <utility>

namespace feedline::format {

Result<std::size_t> number_of(SampleSchema schema, std::vector<SampleSchema>& schemas) {
  constexpr std::size_t kMost = 256;
  const auto known = std::ranges::find(schemas, schema);
  if (known != schemas.end()) return static_cast<std::size_t>(known - schemas.begin());
  if (schemas.size() == kMost)
    return data_error("the shards have more than " + std::to_string(kMost) + " different sets of columns", "format");
  schemas.push_back(std::move(schema));
  return schemas.size() - 1;
}

}  // namespace feedline::format
