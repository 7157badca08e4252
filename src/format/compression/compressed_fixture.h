// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compresses text with each kind of compression, for tests and fuzzers.

#include <bzlib.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <string_view>

#include "format/compression/compression.h"

namespace feedline::format {

// The Brotli data for 40 repetitions of this line is a constant, so that tests do not depend on Brotli's compression
// library.
inline constexpr std::string_view kBrotliLine = "a loader that keeps its promises ";
inline constexpr std::string_view kBrotliOfLine40 =
    "\x1b\x27\x05\xf8\x1d\x09\x36\x4e\x72\xbb\xc6\xc2\x59\x0d\x12\x36\x47\xb7\xd2\xd6\xb2\x0c\x6e\xae\x71\x28\x84\x12"
    "\xcb\x24\x0c\xb9\xcc\x54\x16\x29\xd2\xb8\xf5\xc1\x0c";

inline std::string repeated(std::string_view line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line;
  return text;
}

// Supports Brotli only for the text above.
inline std::string compressed(Compression kind, std::string_view text) {
  if (kind == Compression::kBrotli) return std::string(kBrotliOfLine40);
  std::string out(text.size() * 2 + 1000, '\0');
  std::size_t bytes = out.size();
  const int size = static_cast<int>(text.size());
  if (kind == Compression::kZstd) {
    bytes = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  } else if (kind == Compression::kSnappy) {
    snappy_compress(text.data(), text.size(), out.data(), &bytes);
  } else if (kind == Compression::kLz4) {
    bytes = static_cast<std::size_t>(LZ4_compress_default(text.data(), out.data(), size, static_cast<int>(out.size())));
  } else if (kind == Compression::kBzip2) {
    auto made = static_cast<unsigned>(out.size());
    BZ2_bzBuffToBuffCompress(out.data(), &made, const_cast<char*>(text.data()), static_cast<unsigned>(size), 9, 0, 0);
    bytes = made;
  } else {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED,
                 kind == Compression::kGzip   ? 31
                 : kind == Compression::kZlib ? 15
                                              : -15,
                 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    bytes = out.size() - stream.avail_out;
    deflateEnd(&stream);
  }
  out.resize(bytes);
  return out;
}

}  // namespace feedline::format
