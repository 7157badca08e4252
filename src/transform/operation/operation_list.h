// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace feedline::transform {

struct OperationType;

// Returns the operation types defined in ops/. The source file is generated from the contents of that folder (see
// operation_list.cmake).
const std::vector<const OperationType*>& list_operations();

}  // namespace feedline::transform
