// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises compressed files and archives by their first bytes, for error messages.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace feedline::format {

inline constexpr std::size_t kArchiveHead = 8;  // number of bytes needed to recognise any kind

struct ArchiveKind {
  std::string_view start;  // offset in the file
  std::string_view name;
};
inline constexpr std::array kArchiveKinds{ArchiveKind{"\x1f\x8b", "gzip"},
                                          ArchiveKind{"BZh", "bzip2"},
                                          ArchiveKind{"\xfd"
                                                      "7zXZ",
                                                      "xz"},
                                          ArchiveKind{"\x28\xb5\x2f\xfd", "zstd"},
                                          ArchiveKind{"\x04\x22\x4d\x18", "lz4"},
                                          ArchiveKind{"PK\x03\x04", "zip"},
                                          ArchiveKind{"7z\xbc\xaf", "7z"},
                                          ArchiveKind{"Rar!", "rar"}};

// Returns a name such as "gzip", or an empty string if `start` does not match a known kind.
inline std::string_view archive_kind_of(std::span<const std::byte> start) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  for (const ArchiveKind& kind : kArchiveKinds)
    if (text.starts_with(kind.start)) return kind.name;
  return {};
}

}  // namespace feedline::format
