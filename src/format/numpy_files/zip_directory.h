// SPDX-License-Identifier: Apache-2.0
#pragma once

// The members of a zip archive such as an .npz file, including ZIP64 sizes. Little-endian.
//
//     local   0  4  "PK\3\4", before each member         central  0  4  "PK\1\2", one per member, after all members
//            26  2  bytes of the name, n                         8  2  flags: 1 encrypted
//            28  2  bytes of the extra field, m                 10  2  method: 0 stored, 8 deflated
//            30  n  name, m extra, then the data                16  4  CRC-32 of the uncompressed bytes
//     end     0  4  "PK\5\6", in the last 64 KiB                20  4  bytes stored, 4 uncompressed bytes
//            10  2  members                                     28  2  bytes of name, 2 extra, 2 comment
//            12  4  bytes of the central directory              42  4  offset of the local header
//            16  4  offset of the central directory             46  n  name; extra: 2 kind (1 is ZIP64), 2 bytes, which
//     end of ZIP64 "PK\6\6", found by its locator "PK\6\7"                 has 8 bytes for each number that is all ones
//
// Source: PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline::format {

struct ZipMember {
  std::string name;
  bool is_deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t plain_bytes = 0;
  std::span<const std::byte> stored;
};

// Returns the members in the order of the directory. The bytes of the archive must outlive the members. Fails with
// kData if the archive is truncated, damaged or not a zip archive, or if a member is encrypted or uses an unsupported
// compression method.
Result<std::vector<ZipMember>> zip_members(std::span<const std::byte> archive);
// Decompresses a deflated member into `out`, which has plain_bytes bytes. Fails with kData if the member is damaged or
// has a different size.
Result<void> inflate_member(const ZipMember& member, std::span<std::byte> out);
// Decompresses the first bytes of a deflated member into `out`, and returns the number of bytes written. Fails with
// kData if the member is damaged.
Result<std::size_t> inflate_front(const ZipMember& member, std::span<std::byte> out);
// Fails with kData if the checksum of the uncompressed bytes is wrong.
Result<void> check_sum(const ZipMember& member, std::span<const std::byte> plain);

}  // namespace feedline::format
