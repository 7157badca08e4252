// SPDX-License-Identifier: Apache-2.0
#pragma once

// URLs as text: their parts, and what of them is nobody's business.

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
  std::string_view query;      // behind "?", without a fragment
};
// nullopt: no scheme, or no host.
std::optional<UrlParts> parts_of_url(std::string_view url);

// The URL with a name in the place of every secret: of user and password, and of the signatures and tokens in its
// query. This process remembers them, for this host alone.
std::string without_secrets(std::string_view url);
// What stood there before. Text that was never without_secrets() is itself.
std::string with_secrets(std::string_view url);

// The same for every way to write the URL: scheme and host in lower case, no port that is the scheme's own, no user,
// and nothing that signs or dates the request.
std::string normal_url(std::string_view url);

// As AWS wants it: all but A-Z a-z 0-9 - . _ ~ as %XX; slashes stay where they divide a path.
std::string percent_encoded(std::string_view text, bool keeps_slashes);
// nullopt: a % without two hexadecimal digits, or one that stands for the end of a C string.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace feedline::storage
