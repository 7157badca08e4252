// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the operations for one field of a sample with several images and masks, and queries properties of operations.

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/operation.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {

// The list for one field. Operations for other fields become op::Skipped, so that the rest keep their streams.
std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field);

// Calls visit(operation) for each operation that is nested directly in `operation`.
template <typename Visit>
void for_each_nested(const Operation& operation, Visit visit) {
  for (const auto& chain : operation->chains()) std::ranges::for_each(chain, visit);
}

// Properties of an operation or its nested operations.
bool changes_size(const Operation& operation);
// Returns true if it moves pixels without changing their meaning, so that masks, boxes and points follow.
bool is_geometric(const Operation& operation);
// Returns true if it chooses its changes, which may move pixels of images without masks following.
bool is_automatic(const Operation& operation);
// Returns true if its draws depend on the image's size. Fields that share its draws must then have equal sizes.
bool draws_by_size(const Operation& operation);
// Returns true if its output has values other than bytes.
bool makes_values(const Operation& operation);
// Returns true if it writes rectangles over the image.
bool erases(const Operation& operation);

}  // namespace feedline::transform
