// SPDX-License-Identifier: Apache-2.0
#include "storage/http/site.h"

#include "storage/http/url.h"

namespace feedline::storage {

Result<Call> Site::call_with_sums(const std::string& object, const std::string& method) const {
  FEEDLINE_TRY(Call made, call(object, {}));
  made.method = method;
  return made;
}

Refused Site::refused(const ResponseHead& head, std::string_view /*body*/, std::uint64_t /*keys*/) const {
  switch (head.status) {
    case 408:  // request timeout
    case 425:  // too early
    case 429:  // too many requests
    case 500:
    case 502:
    case 503:
    case 504:
      return Refused::kForNow;
    default:
      return Refused::kForGood;
  }
}

Result<Call> HttpSite::call(const std::string& object, std::string_view /*query*/) const {
  return Call{.url = with_secrets(object), .headers = {}, .follows = true};
}

}  // namespace feedline::storage
