// SPDX-License-Identifier: Apache-2.0
#pragma once

// Objects written to S3: small ones by one request, larger ones by parts that are sent side by side.
//
//   POST ?uploads  ─►  PUT ?partNumber=1..n&uploadId=  ─►  POST ?uploadId=  ─►  the object is there, as a whole
//                            └─ one fails, or a stop is asked for ─►  DELETE ?uploadId=  ─►  nothing is there
//
// Each request is tried again as reads are (transfer.h). Not taken for success:
//
//   200 to the completion, with an Error in its body     tried again, or an error, by its code
//   200 to the completion, without its result            an error
//   200 to a part, without an ETag                       an error
//   404 to the completion                                success, if the object is there in as many bytes and parts: an
//                                                        answer before was lost

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

// How requests are made, and by whom.
struct S3Remote {
  std::shared_ptr<const S3Site> site;
  HttpLimits limits = http_limits();
  Client* client = nullptr;  // nullptr: the process's
};

// What is in memory is at most at_once parts.
struct UploadLimits {
  std::uint64_t part_bytes = 16 << 20;  // S3 takes no less than 5 MiB; more where an object would have over 10,000
  std::size_t at_once = 4;
};

// All wait. kCancelled: a stop was asked for; what was begun is aborted, within seconds. The ETag of what is written.
Result<std::string> put_object(const S3Remote& remote, const std::string& object, std::span<const std::byte> bytes,
                               std::stop_token stop = {});
// Of a local file, which does not change meanwhile.
Result<std::string> upload_file(const S3Remote& remote, const std::string& file, const std::string& object,
                                const UploadLimits& limits = {}, std::stop_token stop = {});
// Of what is not there, too.
Result<void> remove_object(const S3Remote& remote, const std::string& object);
// The uploads of parts below `folder` ("s3://bucket/prefix/") that were begun and not ended.
Result<std::vector<S3Upload>> unfinished_uploads(const S3Remote& remote, const std::string& folder);
Result<void> abort_upload(const S3Remote& remote, const std::string& object, const std::string& id);

}  // namespace feedline::storage
