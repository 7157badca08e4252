// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace feedline::base {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(hex_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_of(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfPiecesIsOfTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 37 + i / 7);
  for (const std::size_t length : {0u, 1u, 55u, 56u, 63u, 64u, 65u, 119u, 120u, 128u, 1000u})
    for (const std::size_t piece : {1u, 3u, 63u, 64u, 65u, 200u}) {
      const std::string_view whole = std::string_view(text).substr(0, length);
      RunningSha256 running;
      for (std::size_t at = 0; at < length; at += piece) running.add(std::as_bytes(std::span(whole.substr(at, piece))));
      EXPECT_EQ(hex_of(running.digest()), hex_of(sha256(whole))) << length << " by " << piece;
    }
}

TEST(Sha256, ByInstructionsIsThatWithout) {
  const AddSha256Blocks hardware = sha256_hardware();
  if (hardware == nullptr) GTEST_SKIP() << "this CPU has no instructions for it";
  std::array<std::byte, 64 * 5> blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::byte(i * 89 + i / 11);
  std::array<std::uint32_t, 8> one{1, 2, 3, 4, 5, 6, 7, 0x80000000}, other = one;
  hardware(one, blocks.data(), 5);
  add_sha256_blocks_portably(other, blocks.data(), 5);
  EXPECT_EQ(one, other);
}

TEST(Sha256, AuthenticatesAsRfc4231Says) {
  EXPECT_EQ(hex_of(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_of(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex_of(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace feedline::base
