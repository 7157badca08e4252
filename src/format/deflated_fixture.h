// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: compresses text in the formats of gzip and zlib.

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace feedline::format {

inline constexpr int kGzipWindow = 15 + 16, kZlibWindow = 15;  // argument of deflateInit2()

inline std::string deflated(const std::string& content, int window = kGzipWindow) {
  std::string out(content.size() + 1000, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace feedline::format
