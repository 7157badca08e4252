// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes objects to S3: small ones with one request, and larger ones in parts that are sent concurrently.
//
//   POST ?uploads  ─►  PUT ?partNumber=1..n&uploadId=  ─►  POST ?uploadId=  ─►  the complete object exists
//                            └─ failure, or a stop request ─►  DELETE ?uploadId=  ─►  nothing exists
//
// Requests are retried like reads (transfer.h). Special cases:
//
//   200 to the completion, with an Error in its body     retried, or an error, depending on its code
//   200 to the completion, without its result            an error
//   200 to a part, without an ETag                       an error
//   404 to the completion                                success, if the object exists with the same bytes and parts:
//                                                        an earlier response was lost

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "storage/s3/listing.h"
#include "storage/s3/s3_storage.h"

namespace feedline::storage {

// How requests are sent, and by which client.
struct S3Remote {
  std::shared_ptr<const S3Site> site;
  HttpLimits limits = http_limits();
  Client* client = nullptr;  // nullptr: the process's client
};

// At most at_once parts are in memory at the same time.
struct UploadLimits {
  std::uint64_t part_bytes = 16 << 20;  // S3's minimum is 5 MiB; larger if an object would have over 10,000 parts
  std::size_t at_once = 4;
};

// These functions block and return the ETag of the written object. kCancelled: a stop was requested; uploads in
// progress are aborted within seconds.
Result<std::string> put_object(const S3Remote& remote, const std::string& object, std::span<const std::byte> bytes,
                               std::stop_token stop = {});
// Uploads a local file, which must not change during the call.
Result<std::string> upload_file(const S3Remote& remote, const std::string& file, const std::string& object,
                                const UploadLimits& limits = {}, std::stop_token stop = {});
// Also succeeds if the object does not exist.
Result<void> remove_object(const S3Remote& remote, const std::string& object);
// Returns unfinished multipart uploads below `folder` ("s3://bucket/prefix/").
Result<std::vector<S3Upload>> unfinished_uploads(const S3Remote& remote, const std::string& folder);
Result<void> abort_upload(const S3Remote& remote, const std::string& object, const std::string& id);

}  // namespace feedline::storage
