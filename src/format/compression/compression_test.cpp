// SPDX-License-Identifier: Apache-2.0
#include "format/compression/compression.h"

#include <gtest/gtest.h>

#include <string>

#include "format/compression/compressed_fixture.h"

namespace feedline::format {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the decompressed text, or the error.
std::string exactly(Compression kind, std::string_view in, std::size_t bytes) {
  std::string out(bytes, '?');
  const auto done = decompress_exactly(kind, bytes_of(in), std::as_writable_bytes(std::span(out)));
  return done ? out : done.error().what;
}
std::string at_most(Compression kind, std::string_view in, std::uint64_t most) {
  memory::ByteBuffer out;
  const auto made = decompress(kind, bytes_of(in), out, most);
  EXPECT_LE(out.capacity(), most) << "never more memory than allowed";
  return made ? text_of(*made) : made.error().what;
}
std::string streamed(Compression kind, std::string_view in, std::size_t piece, std::uint64_t most) {
  auto stream = StreamDecompression::start(kind, most);
  if (!stream) return stream.error().what;
  std::string out;
  const auto take = [&](std::span<const std::byte> bytes) -> Result<void> {
    return out += text_of(bytes), Result<void>();
  };
  for (std::size_t i = 0; i < in.size(); i += piece)
    if (auto fed = stream->feed(bytes_of(in.substr(i, piece)), take); !fed) return fed.error().what;
  if (auto ended = stream->finish(take); !ended) return ended.error().what;
  EXPECT_EQ(stream->made(), out.size());
  return out;
}

class Kinds : public ::testing::TestWithParam<Compression> {
 protected:
  const std::string text = repeated(kBrotliLine, 40);
  const std::string in = compressed(GetParam(), text);
};

TEST_P(Kinds, WhatWasCompressedComesBack) {
  EXPECT_EQ(exactly(GetParam(), in, text.size()), text);
  EXPECT_EQ(at_most(GetParam(), in, text.size()), text) << "exactly as many bytes as allowed";
  EXPECT_EQ(at_most(GetParam(), in, 1 << 20), text);
  for (const std::size_t piece : {1, 7, 1000}) EXPECT_EQ(streamed(GetParam(), in, piece, text.size()), text) << piece;
}

TEST_P(Kinds, AnotherSizeIsAnError) {
  EXPECT_TRUE(exactly(GetParam(), in, text.size() - 1).starts_with("damaged " + std::string(name_of(GetParam()))));
  EXPECT_TRUE(exactly(GetParam(), in, text.size() + 1).starts_with("damaged")) << "one less than expected";
  EXPECT_TRUE(exactly(GetParam(), in, 0).starts_with("damaged"));
  EXPECT_TRUE(at_most(GetParam(), in, text.size() - 1).starts_with("damaged"));
  EXPECT_TRUE(at_most(GetParam(), in, 0).starts_with("damaged"));
  EXPECT_TRUE(streamed(GetParam(), in, 16, text.size() - 1).starts_with("damaged"));
}

TEST_P(Kinds, CutAnywhereIsAnError) {
  for (std::size_t bytes = 0; bytes < in.size(); ++bytes) {
    const std::string_view cut = std::string_view(in).substr(0, bytes);
    EXPECT_TRUE(exactly(GetParam(), cut, text.size()).starts_with("damaged")) << bytes;
    // a truncated block without a size is valid if it ends after a sequence
    if (GetParam() == Compression::kLz4) continue;
    EXPECT_TRUE(at_most(GetParam(), cut, 1 << 20).starts_with("damaged")) << bytes;
    EXPECT_TRUE(streamed(GetParam(), cut, 16, 1 << 20).starts_with("damaged")) << bytes;
  }
}

TEST_P(Kinds, NoByteBehindTheEndIsIgnored) {
  EXPECT_TRUE(exactly(GetParam(), in + "x", text.size()).starts_with("damaged"));
  EXPECT_TRUE(at_most(GetParam(), in + "xyz", 1 << 20).starts_with("damaged"));
  EXPECT_TRUE(streamed(GetParam(), in + "xyz", 16, 1 << 20).starts_with("damaged"));
}

INSTANTIATE_TEST_SUITE_P(All, Kinds,
                         ::testing::Values(Compression::kZstd, Compression::kGzip, Compression::kZlib,
                                           Compression::kDeflate, Compression::kBrotli, Compression::kBzip2,
                                           Compression::kSnappy, Compression::kLz4),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST(Compression, MembersBehindEachOtherAreOneText) {
  for (const Compression kind : {Compression::kZstd, Compression::kGzip, Compression::kBzip2}) {
    const std::string two = compressed(kind, "one ") + compressed(kind, "two");
    EXPECT_EQ(exactly(kind, two, 7), "one two") << name_of(kind);
    EXPECT_EQ(at_most(kind, two, 7), "one two") << name_of(kind);
    EXPECT_EQ(streamed(kind, two, 3, 7), "one two") << name_of(kind);
    EXPECT_TRUE(exactly(kind, two, 4).starts_with("damaged")) << "the first part is not complete";
  }
  for (const Compression kind : {Compression::kZlib, Compression::kDeflate})
    EXPECT_TRUE(at_most(kind, compressed(kind, "one ") + compressed(kind, "two"), 100).starts_with("damaged"));
  EXPECT_EQ(at_most(Compression::kGzip, compressed(Compression::kGzip, "tape") + std::string(600, '\0'), 4), "tape");
  EXPECT_EQ(at_most(Compression::kGzip, compressed(Compression::kZlib, "either"), 6), "either");
}

TEST(Compression, NothingCompressedIsNothing) {
  for (const Compression kind : {Compression::kZstd, Compression::kGzip, Compression::kZlib, Compression::kDeflate,
                                 Compression::kBzip2, Compression::kSnappy, Compression::kLz4}) {
    EXPECT_EQ(exactly(kind, compressed(kind, ""), 0), "") << name_of(kind);
    EXPECT_EQ(at_most(kind, compressed(kind, ""), 10), "") << name_of(kind);
  }
}

TEST(Compression, NothingIsTheSameWithRoomAndWithoutIt) {
  for (const std::string& nothing : {std::string(1, '\0'), std::string("\x05", 1)}) {
    const bool with_room = at_most(Compression::kLz4, nothing, 10).empty();
    EXPECT_EQ(exactly(Compression::kLz4, nothing, 0).empty(), with_room);
  }
}

// Megabytes of zeros compress to a few bytes.
TEST(Compression, ABombIsStoppedAtWhatIsAllowed) {
  const std::string zeros(4 << 20, '\0');
  for (const Compression kind : {Compression::kZstd, Compression::kGzip, Compression::kBzip2, Compression::kSnappy}) {
    const std::string bomb = compressed(kind, zeros);
    EXPECT_TRUE(at_most(kind, bomb, 100'000).contains("decompresses to more")) << name_of(kind);
    EXPECT_TRUE(streamed(kind, bomb, 1 << 20, 100'000).starts_with("damaged")) << name_of(kind);
  }
}

TEST(Compression, ASizeThatNoBlockCanHaveAllocatesNothing) {
  // a header with a size of 4 GiB, followed by three bytes
  EXPECT_TRUE(at_most(Compression::kSnappy,
                      std::string("\xff\xff\xff\xff\x0f\x08"
                                  "abc",
                                  9),
                      std::uint64_t{8} << 30U)
                  .contains("the size is impossible"));
}

// With a checksum, a single changed bit is detected.
TEST(Compression, AChecksumThatDiffersIsAnError) {
  const std::string text = repeated("some text, 1, 2, 3; ", 100);
  for (const Compression kind : {Compression::kGzip, Compression::kZlib, Compression::kBzip2}) {
    const std::string whole = compressed(kind, text);
    for (std::size_t i = 10; i < whole.size(); ++i) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ 1);
      const std::string made = at_most(kind, flipped, 1 << 20);
      EXPECT_TRUE(made == text || made.starts_with("damaged")) << name_of(kind) << i;
    }
  }
}

TEST(Compression, ZstdIsReadBack) {
  memory::ByteBuffer room;
  const std::string text = repeated("packed ", 1000);
  const auto packed = compress_zstd(bytes_of(text), 7, room);
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), text.size() / 10);
  EXPECT_EQ(exactly(Compression::kZstd, text_of(*packed), text.size()), text);
}

}  // namespace
}  // namespace feedline::format
