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
  // Consumes input from the front of `in` and writes output to the front of `out`, as much as possible. A step that
  // makes no progress before the end of the stream needs more input. Requires: `out` is not empty.
  virtual Step step(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // Prepares for the next frame, member or stream. Returns false if the format allows only one.
  virtual bool restart() = 0;
};

// Returns nullptr if the kind supports only blocks or there is not enough memory.
std::unique_ptr<StreamCodec> make_stream_codec(Compression kind);
bool has_streams(Compression kind);

// Returns the decompressed size from a block's header, or nullopt if the kind does not store the size or the stored
// size is impossible.
std::optional<std::uint64_t> size_in_block(Compression kind, std::span<const std::byte> in);
// Decompresses a whole block and returns the decompressed size, which may be positive even if `out` is empty. Returns
// nullopt if the block is damaged or does not fit into `out`.
std::optional<std::size_t> decompress_block(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

std::unexpected<Error> damaged(Compression kind, const std::string& how);
std::unexpected<Error> makes_more(Compression kind, std::uint64_t most);

}  // namespace feedline::format
