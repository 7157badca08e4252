// SPDX-License-Identifier: Apache-2.0
#pragma once

// A common interface to the stream decompression libraries, internal to this folder.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "format/compression/compression.h"

namespace feedline::format {

// Not thread-safe.
class StreamCodec {
 public:
  struct Step {
    std::size_t taken = 0, made = 0;
    bool at_end = false;  // at the end of a frame, member or stream, with a verified checksum if it has one
    std::string wrong{};  // an error message; empty if there was no error
  };

  virtual ~StreamCodec() = default;
  // Consumes the front of `in` and writes to the front of `out`, as far as possible. If it makes no progress before the
  // end, it needs more of `in`. Requires: `out` is not empty.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // Prepares for the next frame, member or stream; false if none may follow.
  virtual bool restart() = 0;
};

// nullptr if the kind has only blocks, or there is not enough memory.
std::unique_ptr<StreamCodec> make_stream_codec(Compression kind);
bool has_streams(Compression kind);

// Blocks are decompressed in one call. Returns the size in the block's header; nullopt if the kind does not store it,
// or it is impossible.
std::optional<std::uint64_t> size_in_block(Compression kind, std::span<const std::byte> in);
// Returns the decompressed size, which may be positive even if `out` is empty; nullopt if the block is damaged or
// decompresses to more than `out` can hold.
std::optional<std::size_t> decompress_block(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

std::unexpected<Error> damaged(Compression kind, const std::string& how);
std::unexpected<Error> makes_more(Compression kind, std::uint64_t most);

}  // namespace feedline::format
