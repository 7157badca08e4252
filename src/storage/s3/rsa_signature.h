// SPDX-License-Identifier: Apache-2.0
#pragma once

// Signs a service account's token requests for Google with the system's libcrypto, opened at run time: without it, only
// this fails.

#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::storage {

// RSASSA-PKCS1-v1_5 with SHA-256 (RS256 of RFC 7518) of `text`. key: a private RSA key in PEM, never included in
// errors. kStorage: an invalid key, or no libcrypto, with the package to install.
Result<std::string> rs256(std::string_view key, std::string_view text);
// The same with this library only, for tests.
Result<std::string> rs256_by(const std::string& library, std::string_view key, std::string_view text);

}  // namespace feedline::storage
