// SPDX-License-Identifier: Apache-2.0
#pragma once

// AWS's Signature Version 4.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::storage {

struct S3Keys {
  std::string id, secret;
  std::string token;             // for temporary keys
  std::int64_t expires = 0;      // in seconds since 1970; 0: never
  std::string bearer = {};       // a token that is sent as is; replaces everything but `expires`
  std::uint64_t generation = 0;  // increases with each set of keys that a KeyRing finds
  bool is_empty() const { return id.empty() && bearer.empty(); }
};

// Replaces the SHA-256 of a body if TLS protects its integrity.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct S3Request {
  std::string method = "GET";
  std::string host;
  std::string path;                            // as sent: percent_encoded()
  std::map<std::string, std::string> query;    // not encoded
  std::map<std::string, std::string> headers;  // names in lower case; "host" and AWS's headers are added automatically
  std::string payload;  // the SHA-256 of the body in hexadecimal, or kUnsignedPayload; empty if there is no body
};

// Returns "a=1&b=2", encoded and in signing order.
std::string query_text(const std::map<std::string, std::string>& query);
// The two steps of signing a request for any AWS service. Returns the text to sign. Requires: all headers are set,
// including "host" and AWS's own headers, and the payload hash is not empty.
std::string canonical_request(const S3Request& request);
// time: "20150830T123600Z". Returns hexadecimal digits.
std::string signature_of(const std::string& canonical, const S3Keys& keys, std::string_view time,
                         std::string_view region, std::string_view service);
// Returns the headers to send ("name: value"), including the request's own headers except host. now: seconds since
// 1970.
std::vector<std::string> signed_headers(const S3Request& request, const S3Keys& keys, std::string_view region,
                                        std::int64_t now);

}  // namespace feedline::storage
