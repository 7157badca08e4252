// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: environment variables with credentials.

#include <cstdlib>
#include <map>
#include <string>

namespace feedline::storage {

using Variables = std::map<std::string, std::string>;

// Sets environment variables for one test; an empty value unsets a variable.
class Environment {
 public:
  explicit Environment(const Variables& values) {
    Variables all;
    for (const char* name :
         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
          "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION",
          "AWS_DEFAULT_PROFILE", "AWS_S3_ADDRESSING_STYLE", "AWS_REQUEST_PAYER", "GS_ACCESS_KEY_ID",
          "GS_SECRET_ACCESS_KEY", "GS_ENDPOINT_URL", "CLOUDSDK_AUTH_ACCESS_TOKEN"})
      all[name] = "";
    all["AWS_SHARED_CREDENTIALS_FILE"] = all["AWS_CONFIG_FILE"] = "/nowhere";
    for (const auto& [name, value] : values) all[name] = value;
    for (const auto& [name, value] : all) {
      const char* const before = std::getenv(name.c_str());
      before_[name] = before ? before : "";
      set(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }

 private:
  static void set(const std::string& name, const std::string& value) {
    if (value.empty())
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), value.c_str(), 1);
  }
  Variables before_;
};

}  // namespace feedline::storage
