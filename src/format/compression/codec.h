// SPDX-License-Identifier: Apache-2.0
#pragma once

// One interface over the libraries that decompress streams. For the files of this folder.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "format/compression/compression.h"

namespace feedline::format {

// Not for several threads at once.
class StreamCodec {
 public:
  struct Step {
    std::size_t taken = 0, made = 0;
    bool at_end = false;  // of a frame, member or stream, whose checksum was compared where it has one
    std::string wrong{};  // empty: fine so far
  };

  virtual ~StreamCodec() = default;
  // Takes from the front of `in` and writes to the front of `out`, as far as it gets. Neither taken nor made, and not
  // at an end: it needs more of `in`. Requires: room in `out`.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // For what follows behind an end; false: nothing may follow.
  virtual bool restart() = 0;
};

// nullptr: the kind has blocks alone, or there is no memory for it.
std::unique_ptr<StreamCodec> make_stream_codec(Compression kind);
bool has_streams(Compression kind);

// Blocks that are decompressed in one call. What a block says of its own size, where it says it and could have so many
// bytes at all; nullopt: it does not, or is damaged.
std::optional<std::uint64_t> size_in_block(Compression kind, std::span<const std::byte> in);
// The bytes that were made, more than `out` has where that is none; nullopt: it is damaged, or makes more than `out`.
std::optional<std::size_t> decompress_block(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

std::unexpected<Error> damaged(Compression kind, const std::string& how);
std::unexpected<Error> makes_more(Compression kind, std::uint64_t most);

}  // namespace feedline::format
