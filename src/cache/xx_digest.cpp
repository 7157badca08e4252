// SPDX-License-Identifier: Apache-2.0
#include "cache/xx_digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cache/checksum.h"

namespace feedline::cache {

struct XxDigest::State {
  XxKind kind;
  XXH32_state_t of_32;
  XXH64_state_t of_64;
  XXH3_state_t of_3;
};

XxDigest::XxDigest(XxKind kind) : state_(std::make_unique<State>()) {
  state_->kind = kind;
  XXH32_reset(&state_->of_32, 0);
  XXH64_reset(&state_->of_64, 0);
  if (kind == XxKind::kXxh3Of128)
    XXH3_128bits_reset(&state_->of_3);
  else
    XXH3_64bits_reset(&state_->of_3);
}
XxDigest::~XxDigest() = default;
XxDigest::XxDigest(XxDigest&&) noexcept = default;
XxDigest& XxDigest::operator=(XxDigest&&) noexcept = default;

void XxDigest::add(std::span<const std::byte> bytes) {
  switch (state_->kind) {
    case XxKind::kXxh32:
      XXH32_update(&state_->of_32, bytes.data(), bytes.size());
      break;
    case XxKind::kXxh64:
      XXH64_update(&state_->of_64, bytes.data(), bytes.size());
      break;
    case XxKind::kXxh3Of64:
      XXH3_64bits_update(&state_->of_3, bytes.data(), bytes.size());
      break;
    case XxKind::kXxh3Of128:
      XXH3_128bits_update(&state_->of_3, bytes.data(), bytes.size());
      break;
  }
}

std::string XxDigest::hex() const {
  switch (state_->kind) {
    case XxKind::kXxh32:
      return hex_of(XXH32_digest(&state_->of_32)).substr(8);
    case XxKind::kXxh64:
      return hex_of(XXH64_digest(&state_->of_64));
    case XxKind::kXxh3Of64:
      return hex_of(XXH3_64bits_digest(&state_->of_3));
    case XxKind::kXxh3Of128: {
      const XXH128_hash_t sum = XXH3_128bits_digest(&state_->of_3);
      return hex_of(sum.high64) + hex_of(sum.low64);
    }
  }
  return {};
}

}  // namespace feedline::cache
