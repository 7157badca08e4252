// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls functions of plugins (feedline/plugin/plugin.h) in the calling thread, and converts their codes to errors.
// Owns nothing, and holds no lock during a call. Thread-safe, if the plugin's function is.

#include <string>

#include "feedline/error.h"
#include "feedline/plugin/plugin.h"

namespace feedline::base {

// `what` names the plugin's part: "the codec 'qoi'".
std::unexpected<Error> plugin_error(int code, const feedline_message& message, const std::string& what);
// A plugin must not throw. If one does, nothing is known about the exception, as it may come from another C++ library.
std::unexpected<Error> plugin_exception(const std::string& what);

// call: passes the message to a function of the plugin, and returns its code.
template <typename Call>
Result<void> call_plugin(const std::string& what, Call&& call) {
  feedline_message message;
  message.text[0] = '\0';
  int code = FEEDLINE_OK;
  try {
    code = call(&message);
  } catch (...) {
    return plugin_exception(what);
  }
  if (code == FEEDLINE_OK) return {};
  return plugin_error(code, message, what);
}

}  // namespace feedline::base
