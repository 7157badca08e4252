// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::storage {

// Which bytes an object has: what an index knows of what it describes, and a read compares. An ETag is its tag.
using Version = ObjectStat;

// kStorage, naming both and what to do, where the object is not the one any more that was indexed.
Result<void> check_version(const std::string& name, const Version& indexed, const Version& now);

// Does the error say that the object is gone, or another one? Then what is kept of it is no longer true.
bool is_of_change(const Error& error);

}  // namespace feedline::storage
