// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompresses blocks and whole shards. Sizes in headers are not trusted: the caller limits memory use, so that small
// inputs cannot exhaust memory.

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
// Returns the name, such as "zstd" or "gzip".
std::string_view name_of(Compression kind);

// Decompresses `in` into `out`. Fails with kData if the data is damaged, truncated or followed by extra bytes, or if
// its decompressed size is not exactly the size of `out`.
Result<void> decompress_exactly(Compression kind, std::span<const std::byte> in, std::span<std::byte> out);

// Decompresses data whose decompressed size is not known, up to `most` bytes. The returned span points into `out`.
// Fails with kData if the data is damaged, truncated or followed by extra bytes, or if the result is larger than `most`
// bytes.
Result<std::span<std::byte>> decompress(Compression kind, std::span<const std::byte> in, memory::ByteBuffer& out,
                                        std::uint64_t most);

// Compresses with zstd. The returned span points into `out`. `level` is 1 to 22.
Result<std::span<const std::byte>> compress_zstd(std::span<const std::byte> in, int level, memory::ByteBuffer& out);

// Decompresses data in pieces, so that shards can be larger than memory. Unframed blocks are buffered until the end, up
// to the maximum block size of their format. Not thread-safe.
class StreamDecompression {
 public:
  using Take = std::function<Result<void>(std::span<const std::byte>)>;
  // `most` is the maximum decompressed size in bytes.
  static Result<StreamDecompression> start(Compression kind, std::uint64_t most);
  StreamDecompression(StreamDecompression&&) noexcept;
  ~StreamDecompression();

  // Passes the decompressed data to `take`, and returns its errors. Fails with kData if the data is damaged or
  // decompresses to more than `most` bytes.
  Result<void> feed(std::span<const std::byte> in, const Take& take);
  // Must be called after the last piece. Fails with kData if the data is truncated.
  Result<void> finish(const Take& take);
  std::uint64_t made() const;

 private:
  struct State;
  explicit StreamDecompression(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace feedline::format
