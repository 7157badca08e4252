// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::storage {

// Identifies an object's content, stored by an index and compared by reads. An ETag becomes its tag.
using Version = ObjectStat;

// kStorage, with both versions and the remedy, if the object has changed since it was indexed.
Result<void> check_version(const std::string& name, const Version& indexed, const Version& now);

// Whether the error means that the object is missing or has changed, so cached data for it is invalid.
bool is_of_change(const Error& error);

}  // namespace feedline::storage
