// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Walks the trees again and reads every sample of undamaged databases, because nothing but the value itself shows
// whether it is valid. Requires: options.storage.
Result<Inspection> inspect_lmdb(const std::string& source, const std::vector<std::string>& databases,
                                const OpenOptions& options);

}  // namespace feedline::format
