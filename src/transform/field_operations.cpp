// SPDX-License-Identifier: Apache-2.0
#include "transform/field_operations.h"

#include <algorithm>

namespace feedline::transform {

std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field) {
  std::vector<Operation> list(operations.begin(), operations.end());
  for (Operation& operation : list)
    if (!operation.fields.empty() && std::ranges::find(operation.fields, field) == operation.fields.end())
      operation = op::Skipped{};
  return list;
}

bool is_geometric(const Operation& operation) {
  return std::holds_alternative<op::Resize>(operation) || std::holds_alternative<op::CenterCrop>(operation) ||
         std::holds_alternative<op::RandomHorizontalFlip>(operation) ||
         std::holds_alternative<op::RandomVerticalFlip>(operation) || std::holds_alternative<op::Pad>(operation) ||
         draws_by_size(operation);
}

bool is_automatic(const Operation& operation) {
  return std::holds_alternative<op::AutoAugment>(operation) || std::holds_alternative<op::RandAugment>(operation) ||
         std::holds_alternative<op::TrivialAugmentWide>(operation);
}

bool draws_by_size(const Operation& operation) {
  return std::holds_alternative<op::RandomCrop>(operation) || std::holds_alternative<op::RandomResizedCrop>(operation);
}

}  // namespace feedline::transform
