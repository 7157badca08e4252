// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the few elements of S3's XML responses that are needed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::storage {

struct S3Listing {
  struct Object {
    std::string key;
    std::uint64_t bytes = 0;
    std::string etag;  // as written, with its quotes
  };
  std::vector<Object> objects;
  std::vector<std::string> prefixes;  // with a trailing slash
  std::string next;                   // the token for the next page; empty: this is the last
};

// Parses a response of ListObjectsV2 with encoding-type=url. kStorage: the text is not a listing, or is truncated.
Result<S3Listing> parse_listing(std::string_view xml);
// A multipart upload that was neither completed nor aborted.
struct S3Upload {
  std::string key, id;
};
struct S3Uploads {
  std::vector<S3Upload> uploads;
  std::string next_key, next_id;  // the markers for the next page; empty: this is the last
};
// Parses a response of ListMultipartUploads with encoding-type=url. kStorage: the text is not such a listing.
Result<S3Uploads> parse_uploads(std::string_view xml);
// Returns the ETag in the response to the completion of an upload; empty if it is another response, or truncated.
std::string completed_etag(std::string_view xml);
// Returns the text of the first element with this name in a document or its beginning; empty if there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace feedline::storage
