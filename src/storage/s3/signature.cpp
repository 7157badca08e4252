// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/signature.h"

#include <array>
#include <cstddef>
#include <ctime>

#include "base/sha256.h"
#include "storage/http/url.h"

namespace feedline::storage {
namespace {

// The hash of an empty body.
constexpr std::string_view kEmptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kMethod = "AWS4-HMAC-SHA256";
constexpr std::string_view kService = "s3";
constexpr std::size_t kDateBytes = 8;  // length of a time

std::string time_text(std::int64_t now) {
  const auto seconds = static_cast<std::time_t>(now);
  std::tm when{};
  ::gmtime_r(&seconds, &when);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &when);
  return text.data();
}

std::string scope_of(std::string_view date, std::string_view region, std::string_view service) {
  return std::string(date) + "/" + std::string(region) + "/" + std::string(service) + "/aws4_request";
}

std::string signed_names(const S3Request& request) {
  std::string names;
  for (const auto& [name, value] : request.headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

}  // namespace

std::string query_text(const std::map<std::string, std::string>& query) {
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text += percent_encoded(name, false) + "=" + percent_encoded(value, false);
  }
  return text;
}

std::string canonical_request(const S3Request& request) {
  std::string listed;
  for (const auto& [name, value] : request.headers) listed += name + ":" + value + "\n";
  return request.method + "\n" + request.path + "\n" + query_text(request.query) + "\n" + listed + "\n" +
         signed_names(request) + "\n" + request.payload;
}

std::string signature_of(const std::string& canonical, const S3Keys& keys, std::string_view time,
                         std::string_view region, std::string_view service) {
  const std::string_view date = time.substr(0, kDateBytes);
  const std::string to_sign = std::string(kMethod) + "\n" + std::string(time) + "\n" + scope_of(date, region, service) +
                              "\n" + base::hex_of(base::sha256(canonical));
  std::string key = "AWS4" + keys.secret;
  for (const std::string_view part : {date, region, service, std::string_view("aws4_request")})
    key = std::string(base::bytes_of(base::hmac_sha256(key, part)));
  return base::hex_of(base::hmac_sha256(key, to_sign));
}

std::vector<std::string> signed_headers(const S3Request& request, const S3Keys& keys, std::string_view region,
                                        std::int64_t now) {
  const std::string time = time_text(now);
  S3Request whole = request;
  whole.headers["host"] = request.host;
  if (whole.payload.empty()) whole.payload = kEmptyBody;
  whole.headers["x-amz-content-sha256"] = whole.payload;
  whole.headers["x-amz-date"] = time;
  if (!keys.token.empty()) whole.headers["x-amz-security-token"] = keys.token;
  const std::string signature = signature_of(canonical_request(whole), keys, time, region, kService);
  std::vector<std::string> lines;
  for (const auto& [name, value] : whole.headers)
    if (name != "host") lines.push_back(name + ": " + value);
  lines.push_back("Authorization: " + std::string(kMethod) + " Credential=" + keys.id + "/" +
                  scope_of(time.substr(0, kDateBytes), region, kService) + ", SignedHeaders=" + signed_names(whole) +
                  ", Signature=" + signature);
  return lines;
}

}  // namespace feedline::storage
