// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a cache of a node says of a copy that it keeps: NAME.entry beside NAME.object. A frame (frame.h) with these
// numbers, and the object's name as its section:
//
//   0 bytes   1 mtime_ns   2 tag   of the object
//   3 checksum                     XXH3-64 of its bytes
//   4 made_ns                      when the copy was made, since 1970
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
  std::string object;  // by its Storage::identity(), which holds no secret
  storage::Version version;
  std::uint64_t checksum = 0;
  std::int64_t made_ns = 0;
};

// An entry takes a page; an object with a longer name than this is not kept.
inline constexpr std::size_t kMostObjectName = 4000;
inline constexpr std::uint64_t kPage = 4096;

// 32 hexadecimal digits of the whole name and the version. Two objects with the same ones, should there ever be any,
// are told apart by what their entries say.
std::string entry_name(const std::string& object, const storage::Version& version);
// What a copy takes of the disk, its entry included.
std::uint64_t disk_bytes(std::uint64_t object_bytes);

std::span<std::byte> write_entry(const Entry& entry, memory::ByteBuffer& buffer);
std::optional<Entry> read_entry(std::span<const std::byte> file);  // nullopt: damaged, or another version's

}  // namespace feedline::cache
