// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Reads the trees of all databases, and every sample of the undamaged ones, because invalid values are not detected
// otherwise. Requires: options.storage.
Result<Inspection> inspect_lmdb(const std::string& source, const std::vector<std::string>& databases,
                                const OpenOptions& options);

}  // namespace feedline::format
