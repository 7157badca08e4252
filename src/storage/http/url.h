// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses URLs and hides their secrets.

#include <optional>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::storage {

// Parts as they are written; a part that is missing is empty.
struct UrlParts {
  std::string_view scheme;     // "https"
  std::string_view user;       // "name:password"
  std::string_view authority;  // "host" or "host:port"
  std::string_view path;       // from the first slash on
  std::string_view query;      // after "?", without a fragment
};
// nullopt: no scheme, or no host.
std::optional<UrlParts> parts_of_url(std::string_view url);

// Replaces every secret of the URL by a placeholder: user and password, and signatures and tokens in its query. This
// process remembers the secrets, for this host only.
std::string without_secrets(std::string_view url);
// Restores the secrets. Text without placeholders is unchanged.
std::string with_secrets(std::string_view url);

// The same for every way to write the URL: scheme and host in lower case, no port that is the scheme's own, no user,
// and nothing that signs or dates the request.
std::string normal_url(std::string_view url);

// AWS's encoding: all but A-Z a-z 0-9 - . _ ~ as %XX; slashes that separate path components are not encoded.
std::string percent_encoded(std::string_view text, bool keeps_slashes);
// nullopt: a % without two hexadecimal digits, or %00.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace feedline::storage
