// SPDX-License-Identifier: Apache-2.0
#pragma once

// Credentials for s3:// and gs:// from a library that the user has installed. They are used if neither the environment
// nor the AWS configuration files contain keys.

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

// Returns new credentials for a scheme, "s3" or "gs". If the credentials are empty, requests are not signed. Fails with
// kConfig if a credential source is configured but the package that reads it is missing, and with kStorage if the
// source fails. Called before the first request, before the credentials expire, and after the server has rejected them.
// Any thread may call this function, but never concurrently for the same scheme. It may block. Does not throw.
using FindCredentials = std::function<Result<Credentials>(const std::string& scheme)>;
// Sets the function that finds credentials. Call this once per process, before opening any dataset.
void find_credentials_by(FindCredentials find);

}  // namespace feedline
