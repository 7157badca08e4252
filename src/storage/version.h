// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::storage {

// Identifies an object's content; an index stores it, and reads compare it. If the storage reports an ETag, the version
// contains a digest of the ETag.
using Version = ObjectStat;

// Returns whether two objects with this version have the same bytes: the version has a strong ETag (RFC 9110, section
// 8.8.1). Sizes, times and weak ETags may be the same for other bytes.
bool is_strong(const Version& version);
// The lowest bits of a tag that was made from a weak ETag.
inline constexpr std::uint64_t kWeakTag = 0x57'2F, kWeakTagBits = 0xFF'FF;

// Returns kStorage with both versions and advice if the object has changed since it was indexed.
Result<void> check_version(const std::string& name, const Version& indexed, const Version& now);

// Returns whether the error means that the object is missing or has changed, so that cached data for it is invalid.
bool is_of_change(const Error& error);

}  // namespace feedline::storage
