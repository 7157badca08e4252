// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace feedline::transform {

struct OperationType;

// The types defined in ops/. The source is generated from the folder's contents: see operation_list.cmake.
const std::vector<const OperationType*>& list_operations();

}  // namespace feedline::transform
