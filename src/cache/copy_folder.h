// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the total size of the copies in a folder: publications (publication.h) that can be made again.
//
//   PATH              a copy, next to PATH.origin and PATH.lock; the time of PATH.origin is the time of its last use
//   PID.N.uses        the copies that a process uses, one name per line; locked by the process as long as it lives
//   uses.lock         held while uses are added, or copies are removed
//
// A process adds a use before it looks for the copy, so a copy that it has found is never removed.

#include <cstdint>
#include <optional>
#include <string>

#include "feedline/error.h"

namespace feedline::cache {

// The copies may use this fraction of the disk space that would be free without them: the default of `cache_limit`.
inline constexpr double kCopyShare = 0.5;

// Notes that this process and its forked children use the copy `path`, until they end. Does nothing if the folder is
// read-only.
void add_use(const std::string& path);
// Makes the copy the last one to be removed.
void note_last_use(const std::string& path);
// Removes the copies that were used longest ago, except those in use by a process, until the copies can grow by `bytes`
// and stay within their limit. `most`: a limit in bytes, instead of kCopyShare. Fails with kStorage and ENOSPC if there
// is not enough room; then nothing was removed.
Result<void> make_room(const std::string& folder, std::uint64_t bytes, std::optional<std::uint64_t> most = {});

}  // namespace feedline::cache
