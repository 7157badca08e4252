// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ways in which formats compress blocks and whole shards. What a header claims is never trusted: nothing is
// allocated or written beyond what the caller allows, so that no small input becomes a large output.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "feedline/error.h"
#include "memory/record.h"

namespace feedline::format {

enum class Compression : std::uint8_t {
  kZstd,     // frames, one behind the other
  kGzip,     // members, one behind the other; zlib's wrapping is taken too
  kZlib,     // RFC 1950
  kDeflate,  // RFC 1951, without a wrapping
  kBrotli,   // one stream
  kBzip2,    // streams, one behind the other
  kSnappy,   // one block without frames
  kLz4,      // one block without frames, which does not say its own size
};
// "zstd", "gzip" and so on.
std::string_view name_of(Compression kind);

// Writes what `in` holds to `out`. kData: it is damaged or cut, has bytes behind its end, or makes another number of
// bytes than `out` has.
Result<void> decompress_exactly(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

// The same of a size that is not known, of at most `most` bytes; the span points into `out`. kData: as above, or it
// makes more.
Result<std::span<std::byte>> decompress(Compression kind, std::span<const std::byte> in, memory::ByteBuffer& out,
                                        std::uint64_t most);

// zstd alone. The span points into `out`. level: zstd's own, 1 to 22.
Result<std::span<const std::byte>> compress_zstd(std::span<const std::byte> in, int level, memory::ByteBuffer& out);

// Data that comes in pieces and is handed on in pieces: of shards, which need not fit into memory. Blocks without
// frames are held until the end, which is as large as their formats allow. Not for several threads at once.
class StreamDecompression {
 public:
  using Take = std::function<Result<void>(std::span<const std::byte>)>;
  // Of at most `most` bytes in all.
  static Result<StreamDecompression> start(Compression kind, std::uint64_t most);
  StreamDecompression(StreamDecompression&&) noexcept;
  ~StreamDecompression();

  // kData: it is damaged, or makes more than `most` bytes; and what `take` says.
  Result<void> feed(std::span<const std::byte> in, const Take& take);
  // After the last piece. kData: it was cut before its end.
  Result<void> finish(const Take& take);
  std::uint64_t made() const;

 private:
  struct State;
  explicit StreamDecompression(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace feedline::format
