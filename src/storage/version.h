// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::storage {

// Identifies an object's content; an index stores it, and reads compare it. If the storage reports an ETag, the version
// contains a digest of the ETag.
using Version = ObjectStat;

// Returns kStorage with both versions and advice if the object has changed since it was indexed.
Result<void> check_version(const std::string& name, const Version& indexed, const Version& now);

// Returns whether the error means that the object is missing or has changed, so that cached data for it is invalid.
bool is_of_change(const Error& error);

}  // namespace feedline::storage
