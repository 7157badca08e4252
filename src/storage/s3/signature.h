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
  std::string token;             // of temporary keys
  std::int64_t expires = 0;      // in seconds since 1970; 0: never
  std::string bearer = {};       // in place of all these but `expires`: a token that is sent as it is
  std::uint64_t generation = 0;  // increases with each set of keys that a KeyRing finds
  bool is_empty() const { return id.empty() && bearer.empty(); }
};

// Replaces the SHA-256 of a body whose integrity TLS protects.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

struct S3Request {
  std::string method = "GET";
  std::string host;
  std::string path;                            // as it is sent: percent_encoded()
  std::map<std::string, std::string> query;    // as they are
  std::map<std::string, std::string> headers;  // names in lower case; "host" and AWS's headers are added automatically
  std::string payload;  // the SHA-256 of the body in hexadecimal, or kUnsignedPayload; empty: no body
};

// "a=1&b=2", encoded and in the order that is signed.
std::string query_text(const std::map<std::string, std::string>& query);
// The two steps of a signature, of any service of AWS's. The text that is signed: of headers that are all there, host
// and those of AWS too, and a payload that is not empty.
std::string canonical_request(const S3Request& request);
// time: "20150830T123600Z". In hexadecimal.
std::string signature_of(const std::string& canonical, const S3Keys& keys, std::string_view time,
                         std::string_view region, std::string_view service);
// The headers to send, "name: value", with those of the request but host. now: in seconds since 1970.
std::vector<std::string> signed_headers(const S3Request& request, const S3Keys& keys, std::string_view region,
                                        std::int64_t now);

}  // namespace feedline::storage
