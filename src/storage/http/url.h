// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses URLs and hides their secrets.

#include <optional>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::storage {

// The parts of a URL as written; missing parts are empty.
struct UrlParts {
  std::string_view scheme;     // "https"
  std::string_view user;       // "name:password"
  std::string_view authority;  // "host" or "host:port"
  std::string_view path;       // starts with the first slash
  std::string_view query;      // query after "?", without a fragment
};
// Returns nullopt if there is no scheme or no host.
std::optional<UrlParts> parts_of_url(std::string_view url);
// Returns whether the connection is encrypted or local, so that a token may be sent.
bool is_private(const UrlParts& parts);

// Replaces every secret in the URL with a placeholder: user and password, and signatures and tokens in the query. The
// process remembers the secrets, and sends them only to this host.
std::string without_secrets(std::string_view url);
// Restores the secrets. Text without placeholders is returned unchanged.
std::string with_secrets(std::string_view url);

// Returns a canonical form of the URL: scheme and host in lower case; no default port, user, signature or date.
std::string normal_url(std::string_view url);

// Encodes as AWS does: all characters except A-Z a-z 0-9 - . _ ~ become %XX. keeps_slashes: slashes are not encoded.
std::string percent_encoded(std::string_view text, bool keeps_slashes);
// Returns nullopt for a % that is not followed by two hexadecimal digits, and for %00.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace feedline::storage
