// SPDX-License-Identifier: Apache-2.0
#pragma once

// Looks for keys and tokens for gs:// in the order of Google's own tools:
//
//   1  GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY: an HMAC key
//   2  CLOUDSDK_AUTH_ACCESS_TOKEN: a token, used as it is
//   3  the file named by GOOGLE_APPLICATION_CREDENTIALS, or written by `gcloud auth application-default login`:
//      a service account, which signs, or a user, who refreshes
//   4  the machine's metadata (GCE, GKE, Cloud Run), unless NO_GCE_CHECK
//
// They never appear in errors or in stored data.

#include <cstdint>

#include "storage/s3/key_service.h"
#include "storage/s3/signature.h"

namespace feedline::storage {

// Returns credentials from the first source that has some; if none does, no keys, and requests are unsigned. Returns
// the error of a source that is configured but fails. now: in seconds since 1970.
Result<S3Keys> find_google_keys(const KeyAsker& ask, std::int64_t now);

}  // namespace feedline::storage
