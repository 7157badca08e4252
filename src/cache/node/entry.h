// SPDX-License-Identifier: Apache-2.0
#pragma once

// The description of a cached copy: NAME.entry, next to NAME.object. The file is a frame (frame.h) with these numbers,
// and the object's name as its section:
//
//   0 bytes   1 mtime_ns   2 tag   of the object
//   3 checksum                     XXH3-64 of its bytes
//   4 made_ns                      creation time of the copy, since 1970
//   5 bytes of the name

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "memory/record.h"
#include "storage/version.h"

namespace feedline::cache {

struct Entry {
  std::string object;  // its Storage::identity(), which contains no secret
  storage::Version version;
  std::uint64_t checksum = 0;
  std::int64_t made_ns = 0;
};

// An entry occupies one page; an object with a longer name is not cached.
inline constexpr std::size_t kMostObjectName = 4000;
inline constexpr std::uint64_t kPage = 4096;

// Returns 32 hexadecimal digits derived from the whole name and the version. If two objects collide, their entries
// distinguish them.
std::string entry_name(const std::string& object, const storage::Version& version);
// Returns the disk space of a copy, including its entry.
std::uint64_t disk_bytes(std::uint64_t object_bytes);

std::span<std::byte> write_entry(const Entry& entry, memory::ByteBuffer& buffer);
std::optional<Entry> read_entry(std::span<const std::byte> file);  // nullopt: damaged, or of another version

}  // namespace feedline::cache
