// SPDX-License-Identifier: Apache-2.0
#include "base/plugin_call.h"

#include <cerrno>
#include <cstring>

namespace feedline::base {

std::unexpected<Error> plugin_error(int code, const feedline_message& message, const std::string& what) {
  std::string text(message.text, ::strnlen(message.text, sizeof message.text));
  if (text.empty()) text = "failed with code " + std::to_string(code) + " and no message";
  text = what + ": " + text;
  switch (code) {
    case FEEDLINE_BAD_ARGUMENT:
      return config_error(std::move(text));
    case FEEDLINE_NOT_FOUND:
      return storage_error(std::move(text), ENOENT);
    case FEEDLINE_FAILED:
      return storage_error(std::move(text), EIO);
    case FEEDLINE_BAD_DATA:
      return data_error(std::move(text), "plugin");
    default:
      return data_error(text + " (the plugin returned the undefined code " + std::to_string(code) + ")", "plugin");
  }
}

std::unexpected<Error> plugin_exception(const std::string& what) {
  return data_error(what + ": the plugin threw an exception; its functions must catch all exceptions and return a code",
                    "plugin");
}

}  // namespace feedline::base
