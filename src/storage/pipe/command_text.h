// SPDX-License-Identifier: Apache-2.0
#pragma once

// Commands as text: what of one is nobody's business.

#include <string>
#include <string_view>
#include <vector>

namespace feedline::storage {

// The secrets of a command, each once: what stands for a password in a URL ("//user:SECRET@"), or signs one
// ("?X-Amz-Signature=SECRET", http/url.h); the value of what is called like one ("AWS_SECRET_ACCESS_KEY=SECRET",
// "--password SECRET", "--token=SECRET"); and what stands behind an option of curl's or wget's that takes a user or a
// header ("-u SECRET", "--user SECRET", "-H 'Authorization: SECRET'").
std::vector<std::string> secrets_in(std::string_view command);

}  // namespace feedline::storage
