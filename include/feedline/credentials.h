// SPDX-License-Identifier: Apache-2.0
#pragma once

// Credentials for s3:// and gs:// from a library of the user's, if neither the environment nor AWS's files have keys.

#include <cstdint>
#include <functional>
#include <string>

#include "feedline/error.h"

namespace feedline {

struct Credentials {
  std::string id, secret;
  std::string token;         // for temporary keys
  std::string bearer;        // an access token that is sent as is, instead of a signature
  std::int64_t expires = 0;  // in seconds since 1970; 0: never
};

// Returns new credentials for a scheme, "s3" or "gs"; empty if there are none, and requests are then unsigned. kConfig:
// a source is configured, but a package that reads it is missing. kStorage: the source failed. Called by any thread, at
// most once at a time per scheme: before the first request, before the credentials expire, and after the server has
// rejected them. It may block. Does not throw.
using FindCredentials = std::function<Result<Credentials>(const std::string& scheme)>;
// Set it once per process, before anything is opened.
void find_credentials_by(FindCredentials find);

}  // namespace feedline
