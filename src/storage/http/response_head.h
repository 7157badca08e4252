// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header of an HTTP response.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/object_sum.h"
#include "storage/version.h"

namespace feedline::storage {

// "bytes 0-499/1234", "bytes 0-499/*", "bytes */1234". Invalid numbers are rejected.
struct ContentRange {
  bool has_range = false;
  std::uint64_t first = 0, last = 0;   // both inclusive
  std::optional<std::uint64_t> total;  // nullopt: "*"
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};
std::optional<ContentRange> parse_content_range(std::string_view text);
// Parses a number of up to 63 bits that consists only of digits.
std::optional<std::uint64_t> parse_size(std::string_view text);
// Parses a date such as "Sun, 06 Nov 1994 08:49:37 GMT"; returns seconds since 1970.
std::optional<std::int64_t> parse_http_date(std::string_view text);
// Returns the target of the first link with rel="next" in a Link header (RFC 8288); empty if there is none.
std::string_view next_in_links(std::string_view text);
// Parses RateLimit: "resolvers";r=0;t=172; returns t if r is 0.
std::optional<std::uint64_t> exhausted_until(std::string_view text);

// Returns the tag of a version (reader.h) for an ETag, including the ETag's quotes. The result is never 0, which
// represents a missing tag. The tag of a weak ETag ends with kWeakTag.
std::uint64_t tag_of(std::string_view etag);

struct ResponseHead {
  int status = 0;
  std::optional<std::uint64_t> content_length;
  std::optional<ContentRange> content_range;
  bool is_whole = false;        // the empty line has been received
  bool has_bad_range = false;   // an invalid Content-Range
  bool ends_by_itself = false;  // chunks or frames: truncation is detected without the length
  bool is_multipart = false;
  std::string etag;  // as sent, with its quotes
  std::optional<std::int64_t> last_modified;
  std::string request_id;
  std::string bucket_region;
  std::string location;    // empty if it is too long
  std::string next_page;   // target of Link: <...>; rel="next"; empty if it is too long
  std::string error_code;  // X-Error-Code and X-Error-Message of the Hugging Face Hub
  std::string error_message;
  std::optional<ObjectSum> sum;  // of the whole object: the fastest checksum that the server sent
  bool is_recoded = false;       // Google sent a decompressed body, so the checksum of the stored object does not apply
  // Retry-After, relative to `now` if it is a date; with an exhausted RateLimit, the end of its window.
  std::optional<std::chrono::seconds> retry_after;

  // Parses one line, with or without its line ending. A status line starts a new header.
  void add(std::string_view line, std::int64_t now);
  // Returns the length of the whole object; nullopt if the header does not contain it.
  std::optional<Version> version() const;
  std::optional<std::uint64_t> object_bytes() const;
  // Returns the ETag if it can be used for If-Match; empty if it is missing or weak.
  std::string_view strong_etag() const;

 private:
  bool is_rate_limited = false;  // retry_after is that of RateLimit
  void add_sum(SumKind kind, std::string_view base64);
};

}  // namespace feedline::storage
