// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the secrets in commands.

#include <string>
#include <string_view>
#include <vector>

namespace feedline::storage {

// Returns the secrets of a command without duplicates: passwords ("//user:SECRET@") and signatures
// ("?X-Amz-Signature=SECRET", http/url.h) in URLs; values whose name is that of a secret
// ("AWS_SECRET_ACCESS_KEY=SECRET", "--password SECRET", "--token=SECRET"); and arguments of curl's and wget's options
// for users and headers ("-u SECRET", "--user SECRET", "-H 'Authorization: SECRET'").
std::vector<std::string> secrets_in(std::string_view command);

}  // namespace feedline::storage
