// SPDX-License-Identifier: Apache-2.0
#pragma once

// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104): for the signatures of requests, which are short.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace feedline::base {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
Sha256 hmac_sha256(std::string_view key, std::string_view bytes);
std::string hex_of(const Sha256& digest);  // in lower case
std::string_view bytes_of(const Sha256& digest);

}  // namespace feedline::base
