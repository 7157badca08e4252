// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header of a server's response.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/object_sum.h"
#include "storage/version.h"

namespace feedline::storage {

// "bytes 0-499/1234", "bytes 0-499/*", "bytes */1234". Impossible numbers are rejected.
struct ContentRange {
  bool has_range = false;
  std::uint64_t first = 0, last = 0;   // both inclusive
  std::optional<std::uint64_t> total;  // nullopt: "*"
  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};
std::optional<ContentRange> parse_content_range(std::string_view text);
// Parses digits only, up to 63 bits.
std::optional<std::uint64_t> parse_size(std::string_view text);
// "Sun, 06 Nov 1994 08:49:37 GMT", in seconds since 1970.
std::optional<std::int64_t> parse_http_date(std::string_view text);

// The tag of a version (reader.h) for an ETag with its quotes. Never 0, which means none.
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
  std::string location;
  std::optional<ObjectSum> sum;  // of the whole object: the fastest checksum that the server sent
  bool is_recoded = false;       // Google sent a decompressed body, so the checksum of the stored object does not apply
  std::optional<std::chrono::seconds> retry_after;  // relative to `now` if it is a date

  // Parses one line, with or without its line ending. A status line begins a new header.
  void add(std::string_view line, std::int64_t now);
  // The length of the whole object; nullopt if the header does not contain it.
  std::optional<Version> version() const;
  std::optional<std::uint64_t> object_bytes() const;
  // The ETag if it is usable for If-Match; empty: missing or weak.
  std::string_view strong_etag() const;

 private:
  void add_sum(SumKind kind, std::string_view base64);
};

}  // namespace feedline::storage
