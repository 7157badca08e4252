// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the few elements needed of S3's XML responses.

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
    std::string etag;  // as it is written, with its quotes
  };
  std::vector<Object> objects;
  std::vector<std::string> prefixes;  // with their slash
  std::string next;                   // the token that continues it; empty: it is all
};

// Parses ListObjectsV2 with encoding-type=url. kStorage: not a listing, or truncated.
Result<S3Listing> parse_listing(std::string_view xml);
// An upload of several parts that was begun and neither completed nor aborted.
struct S3Upload {
  std::string key, id;
};
struct S3Uploads {
  std::vector<S3Upload> uploads;
  std::string next_key, next_id;  // the markers that continue it; empty: it is all
};
// Of ListMultipartUploads with encoding-type=url. kStorage: it is none.
Result<S3Uploads> parse_uploads(std::string_view xml);
// The text of the first element of this name, its entities read; empty: there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace feedline::storage
