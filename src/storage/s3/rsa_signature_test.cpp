// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/rsa_signature.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "storage/s3/rsa_key_fixture.h"

namespace feedline::storage {
namespace {

// Output of `openssl dgst -sha256 -sign` for "header.claims" with this key.
constexpr std::string_view kSignature =
    "b7c55f9c8acd82770648ebe2bc7cc919dabf5114b5769b41d2c8bdd2147e6283306bc89f90e1a8c91aee84948ad88b8dbfcd"
    "99fce8858deba6933ddc8952031620e0b6b84edf8c44cb38abaf9695622a71f94eb7f2d673288bd870ca0989dd6f75e40fa2"
    "c8b24ca3221be0b7113f0187380715a92ad0b4900cada682c8674981e37b4361587c4d5fa8aee677390774dcd12e220ea120"
    "09c8fd042bf904e1cb6f3f2267299a0d0d005753bec4caf05ded838e7512d7ba2a2b883bbbf759c2e7ae94d500b8e8905314"
    "11e9d9c1e455dc76b69a70babcf8e5f9161804d870177fa55d9d9c564a75d5792d1a559cdaa9a198d478c34c6b068ec81ce6"
    "95b6604c7390";

// Not usable for RS256.
constexpr std::string_view kNoRsaKey = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";

bool has_libcrypto() {
  return ::dlopen("libcrypto.so.3", RTLD_NOW) != nullptr || ::dlopen("libcrypto.so.1.1", RTLD_NOW) != nullptr;
}

TEST(RsaSignature, IsOpenSslsOwn) {
  if (!has_libcrypto()) GTEST_SKIP() << "libcrypto is not installed";
  const auto made = rs256(kTestRsaKey, "header.claims");
  ASSERT_TRUE(made) << made.error().message();
  std::string hex;
  for (const char c : *made) {
    hex += "0123456789abcdef"[static_cast<std::uint8_t>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<std::uint8_t>(c) & 15];
  }
  EXPECT_EQ(hex, kSignature);
  EXPECT_NE(*rs256(kTestRsaKey, "header.claimz"), *made);
}

TEST(RsaSignature, NoErrorSaysAnythingOfTheKey) {
  if (!has_libcrypto()) GTEST_SKIP() << "libcrypto is not installed";
  for (const std::string_view key : {kNoRsaKey, std::string_view(""), std::string_view("hunter2")}) {
    const auto made = rs256(key, "x");
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message().find("hunter2"), std::string::npos) << made.error().message();
  }
}

TEST(RsaSignature, WithoutALibraryTheErrorSaysWhatToInstall) {
  const auto none = rs256_by("libnothing.so.9", kTestRsaKey, "x");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("apt-get install libssl3"), std::string::npos) << none.error().message();
  const auto other = rs256_by("libc.so.6", kTestRsaKey, "x");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("not all of its calls"), std::string::npos) << other.error().message();
}

}  // namespace
}  // namespace feedline::storage
