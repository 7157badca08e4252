// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Walks the trees anew, and reads every sample of databases whose trees are whole: of a value nothing but itself says
// whether it is one. Requires: options.storage.
Result<Inspection> inspect_lmdb(const std::string& source, const std::vector<std::string>& databases,
                                const OpenOptions& options);

}  // namespace feedline::format
