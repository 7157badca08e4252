// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompression of the blocks and whole shards of formats. Sizes in headers are never trusted: memory is limited by the
// caller, so a small input cannot exhaust it.

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
  kZstd,     // concatenated frames
  kGzip,     // concatenated members; zlib's wrapper is accepted too
  kZlib,     // RFC 1950
  kDeflate,  // RFC 1951, without a wrapper
  kBrotli,   // one stream
  kBzip2,    // concatenated streams
  kSnappy,   // one unframed block
  kLz4,      // one unframed block, which does not store its size
};
// "zstd", "gzip" and so on.
std::string_view name_of(Compression kind);

// Decompresses `in` to `out`. kData: the data is damaged or truncated, is followed by extra bytes, or does not
// decompress to exactly the size of `out`.
Result<void> decompress_exactly(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

// The same for an unknown size of at most `most` bytes; the span points into `out`. kData: as above, or the size is
// larger.
Result<std::span<std::byte>> decompress(Compression kind, std::span<const std::byte> in, memory::ByteBuffer& out,
                                        std::uint64_t most);

// Compresses with zstd. The span points into `out`. level: zstd's level, 1 to 22.
Result<std::span<const std::byte>> compress_zstd(std::span<const std::byte> in, int level, memory::ByteBuffer& out);

// Decompresses shards that need not fit into memory, with input and output in pieces. Unframed blocks are buffered
// until the end, up to the maximum size of their format. Not thread-safe.
class StreamDecompression {
 public:
  using Take = std::function<Result<void>(std::span<const std::byte>)>;
  // most: the maximum total size in bytes.
  static Result<StreamDecompression> start(Compression kind, std::uint64_t most);
  StreamDecompression(StreamDecompression&&) noexcept;
  ~StreamDecompression();

  // kData: the data is damaged, or decompresses to more than `most` bytes; also returns errors of `take`.
  Result<void> feed(std::span<const std::byte> in, const Take& take);
  // Call after the last piece. kData: the data is truncated.
  Result<void> finish(const Take& take);
  std::uint64_t made() const;

 private:
  struct State;
  explicit StreamDecompression(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace feedline::format
