// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where keys and tokens for gs:// come from, as Google's own tools look for them:
//
//   1  GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY: an HMAC key
//   2  CLOUDSDK_AUTH_ACCESS_TOKEN: a token as it is
//   3  the file that GOOGLE_APPLICATION_CREDENTIALS names, or that `gcloud auth application-default login` has left:
//      a service account, which signs, or a user, who refreshes
//   4  the machine's metadata (GCE, GKE, Cloud Run), unless NO_GCE_CHECK
//
// They are in no error, and in nothing that is kept.

#include <cstdint>

#include "storage/s3/key_service.h"
#include "storage/s3/signature.h"

namespace feedline::storage {

// The first place that has some; without any: no keys, and requests go unsigned. The error of a place that is set up,
// and fails. now: in seconds since 1970.
Result<S3Keys> find_google_keys(const KeyAsker& ask, std::int64_t now);

}  // namespace feedline::storage
